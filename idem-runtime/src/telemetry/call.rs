//! One call, from its first poll until it is counted.

use std::borrow::Cow;

use tracing::Span;
use tracing::field::{Empty, display};

use super::{SPAN, TARGET, count};
use crate::engine::call::is_name;
use crate::error::Error;
use crate::outcome::{How, Outcome};
use crate::sync::{Arc, AtomicBool, Ordering};

/// A call, shared by its caller and by the task that works for it: whoever ends
/// it first counts it. If nobody does, it is counted as `left` with the last of
/// them: its caller had gone, and it had no end.
#[derive(Debug)]
pub(crate) struct Watch {
    operation: Cow<'static, str>,
    span: Span,
    counted: AtomicBool,
}

impl Watch {
    /// Begins to watch, and opens the call's span.
    pub(crate) fn begin(operation: Cow<'static, str>) -> Arc<Self> {
        // What is no name is refused, and is nothing to make a series of.
        let operation = if is_name(&operation) {
            operation
        } else {
            Cow::Borrowed("(invalid)")
        };
        let span = tracing::debug_span!(target: TARGET, SPAN, operation = &*operation,
            outcome = Empty, attempt = Empty, record = Empty);
        Arc::new(Self {
            operation,
            span,
            counted: AtomicBool::new(false),
        })
    }

    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Counts the call, unless it has been.
    pub(crate) fn end(&self, name: &'static str, outcome: &Outcome) {
        if self.counted.swap(true, Ordering::SeqCst) {
            return;
        }
        if outcome.attempt > 0 {
            self.span.record("attempt", outcome.attempt);
        }
        if let Some(record) = &outcome.record {
            self.span.record("record", display(record));
        }
        self.count(name);
    }

    /// Notes that no store was asked for the answer.
    pub(crate) fn hit(&self) {
        count!(CACHE_HITS, "operation" => self.operation.clone());
    }

    /// Counts a call whose body runs without a key.
    pub(crate) fn unprotected(&self) {
        self.end(How::Unprotected.name(), &Outcome::unprotected());
    }

    fn count(&self, name: &'static str) {
        count!(CALLS, "operation" => self.operation.clone(), "outcome" => name);
        self.span.record("outcome", name);
        tracing::debug!(target: TARGET, parent: &self.span, operation = &*self.operation,
            outcome = name, "answered");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !*self.counted.get_mut() {
            self.count("left");
        }
    }
}

/// What a call is counted as that got this error of the engine's.
pub(crate) fn refusal(error: &Error) -> &'static str {
    match error {
        Error::InProgress { .. } => "in_progress",
        Error::PayloadMismatch { .. } => "mismatch",
        Error::UnknownOutcome { .. } => "unknown",
        Error::Superseded => "superseded",
        Error::Stale { .. } => "stale",
        Error::NotReplayable { .. } => "tombstone",
        Error::InvalidKey { .. } => "invalid_key",
        Error::Fingerprint { .. } => "fingerprint",
        Error::Reentrant => "reentrant",
        Error::NoEngine => "no_engine",
        Error::ShuttingDown => "shutting_down",
        Error::NotRecorded(_) => "not_recorded",
        Error::Store(_) => "store",
        // The last ones are of a body's, not of a call's.
        Error::Misuse { .. } | Error::NoContext | Error::Failed { .. } | Error::Step { .. } => {
            "misuse"
        }
    }
}
