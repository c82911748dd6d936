//! As much of an engine as an attempt and its renewals need.

use std::sync::Arc;
use std::time::Duration;

use idem::store::Reserve;

#[path = "../../idem-runtime/src/engine/attempt.rs"]
pub(crate) mod attempt;
#[path = "../../idem-runtime/src/engine/renewal/mod.rs"]
pub(crate) mod renewal;
#[path = "../../idem-runtime/src/engine/tracker.rs"]
pub(crate) mod tracker;

pub(crate) mod call {
    pub(crate) use super::Prepared;
}

/// No schedule here is about the steps of a body.
pub(crate) mod steps {
    #[derive(Debug, Default)]
    pub(crate) struct Steps {}
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) renewals: renewal::Renewals,
    pub(crate) clock: Arc<dyn idem::Clock>,
    pub(crate) attempts: tracker::Tracker,
}

impl Inner {
    pub(crate) fn is_closing(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) operation: Arc<str>,
    pub(crate) reserve: Reserve,
    pub(crate) on_unknown: idem::OnUnknown,
    pub(crate) ttl_us: Option<i64>,
    pub(crate) max_run: Duration,
}

impl Prepared {
    pub(crate) fn lease_us(&self) -> i64 {
        self.reserve.lease_us
    }
}
