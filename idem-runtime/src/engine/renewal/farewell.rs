//! What is left to tell the store about an attempt that was dropped.

use std::time::Duration;

use crate::backoff;
use crate::clock::micros;
use crate::engine::attempt::AttemptState;
use crate::error::StoreError;
use crate::store::{GiveBack, MarkUnknown, Renewer, Written};
use crate::sync::{Arc, Mutex, lock, oneshot};
use crate::telemetry::{self, StoreStep};

pub(super) enum Goodbye {
    GiveBack {
        request: GiveBack,
        /// Whether the reservation was acknowledged; if not, it may still land.
        confirmed: bool,
    },
    Unknown(Arc<AttemptState>, MarkUnknown),
}

pub(super) struct Farewell {
    what: Goodbye,
    /// How long it is worth saying; after that the lease has lapsed.
    until: Duration,
    /// The same on the engine's clock, from when it was taken up.
    until_us: i64,
    tries: u32,
    pub(super) next_us: i64,
    /// Who waits for it.
    _latch: Option<Arc<Latch>>,
}

impl Farewell {
    pub(super) fn new(what: Goodbye, until: Duration) -> Self {
        Self {
            what,
            until,
            until_us: i64::MAX,
            tries: 0,
            next_us: 0,
            _latch: None,
        }
    }

    pub(super) fn with_latch(self, latch: &Arc<Latch>) -> Self {
        Self {
            _latch: Some(Arc::clone(latch)),
            ..self
        }
    }

    pub(super) fn start(&mut self, now_us: i64) {
        self.until_us = now_us.saturating_add(micros(self.until));
    }

    pub(super) fn step(&self) -> StoreStep {
        match self.what {
            Goodbye::GiveBack { .. } => StoreStep::GiveBack,
            Goodbye::Unknown(..) => StoreStep::Unknown,
        }
    }

    pub(super) async fn say(&self, renewer: &mut dyn Renewer) -> Result<Written, StoreError> {
        match &self.what {
            Goodbye::GiveBack { request, .. } => renewer.give_back(request).await,
            Goodbye::Unknown(state, request) => {
                let written = renewer.mark_unknown(request).await?;
                if written.is_done() {
                    telemetry::unknown(state, request.reason);
                }
                Ok(written)
            }
        }
    }

    /// Whether this answer leaves nothing to say.
    fn is_final(&self, said: &Result<Written, StoreError>) -> bool {
        match said {
            Err(_) => false,
            // Not there, or not there yet: a reservation that got no answer may
            // still land, also over what stands there now.
            Ok(Written::Gone | Written::Superseded) => !matches!(
                self.what,
                Goodbye::GiveBack {
                    confirmed: false,
                    ..
                }
            ),
            Ok(_) => true,
        }
    }

    /// Returns whether to say it again, later.
    pub(super) fn again(&mut self, said: &Result<Written, StoreError>, now_us: i64) -> bool {
        if self.is_final(said) || now_us >= self.until_us {
            return false;
        }
        self.tries += 1;
        self.next_us = now_us.saturating_add(micros(backoff::jittered(self.tries)));
        true
    }
}

/// Sends its count when the last farewell that holds it is gone.
pub(super) struct Latch {
    reply: Mutex<Option<oneshot::Sender<usize>>>,
    count: usize,
}

impl Latch {
    pub(super) fn new(reply: oneshot::Sender<usize>, count: usize) -> Arc<Self> {
        Arc::new(Self {
            reply: Mutex::new(Some(reply)),
            count,
        })
    }
}

impl Drop for Latch {
    fn drop(&mut self) {
        if let Some(reply) = lock(&self.reply).take() {
            reply.send(self.count).ok();
        }
    }
}
