//! What became of a delivery.

use std::time::Duration;

use super::ended::{Ended, again};
use crate::delivery::Delivery;
use crate::error::Error;
use crate::identity::RecordId;
use crate::outcome::{How, Outcome};
use crate::policy::Disposition;
use crate::record::UnknownReason;

/// What became of a delivery, with the handler's answer; see the
/// [module page](super) for what to do with each.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "tell the broker what `delivery()` says"]
#[non_exhaustive]
pub enum Received<T, E> {
    /// The handler ran in this delivery, and this is its answer, as it was
    /// recorded.
    First(T),
    /// The message was handled before; this is the recorded answer.
    Duplicate(T),
    /// Another consumer holds the message: it is handling it, or died a short
    /// while ago.
    InProgress {
        /// When it is worth another delivery.
        retry_after: Duration,
    },
    /// An earlier handler ended without an answer: its effect may have happened.
    Unknown {
        /// The record to look at.
        record: RecordId,
        /// How that handler ended.
        reason: UnknownReason,
    },
    /// The handler ran in this delivery and returned this error.
    Failed {
        /// The handler's own error.
        error: E,
        /// `Retry` if `on_error` says `Release`, or if it is rolled back
        /// ([`Uncommitted`](super::Uncommitted)); `Park` otherwise.
        delivery: Delivery,
    },
    /// An earlier delivery failed for good (`Disposition::Store`).
    Rejected {
        /// The text of that handler's error, at most 4 KiB.
        message: String,
    },
    /// This is one delivery more than may run the handler, which did not run.
    OverLimit {
        /// Which delivery this is.
        deliveries: u32,
    },
    /// The engine has no answer; the handler did not run in this delivery, or
    /// lost its record while it ran ([`Error::Superseded`]).
    Refused(Error),
}

/// What a failure that is not recorded leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The handler's effect, unless it says that there is none.
    Kept,
    /// Nothing: it is rolled back.
    #[cfg_attr(not(feature = "tx"), expect(dead_code, reason = "so in a transaction"))]
    Undone,
}

impl<T, E> Received<T, E> {
    pub(super) fn of(
        result: Result<T, Ended<E>>,
        outcome: Option<Outcome>,
        failure: Failure,
    ) -> Self {
        let ended = match result {
            Ok(answer) => {
                return match outcome.map(|outcome| outcome.how) {
                    Some(How::Executed) => Self::First(answer),
                    _ => Self::Duplicate(answer),
                };
            }
            Err(ended) => ended,
        };
        match ended {
            Ended::Failed {
                error,
                disposition,
                deliveries,
            } => Self::Failed {
                error,
                delivery: match (disposition, failure) {
                    (Disposition::Store, _) | (Disposition::Unknown, Failure::Kept) => {
                        Delivery::Park
                    }
                    (Disposition::Release, _) | (Disposition::Unknown, Failure::Undone) => {
                        again(deliveries)
                    }
                },
            },
            Ended::OverLimit { deliveries } => Self::OverLimit { deliveries },
            Ended::Recorded(message) => Self::Rejected { message },
            Ended::Refused(Error::InProgress { retry_after }) => Self::InProgress { retry_after },
            Ended::Refused(Error::UnknownOutcome { record, reason, .. }) => {
                Self::Unknown { record, reason }
            }
            Ended::Refused(error) => Self::Refused(error),
        }
    }

    /// Returns what to tell the broker.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        match self {
            Self::First(_) | Self::Duplicate(_) => Delivery::Ack,
            Self::InProgress { retry_after } => Delivery::Retry {
                after: *retry_after,
            },
            Self::Failed { delivery, .. } => *delivery,
            Self::Unknown { .. } | Self::Rejected { .. } | Self::OverLimit { .. } => Delivery::Park,
            Self::Refused(error) => error.delivery(),
        }
    }

    /// Returns the answer of the handler, of this delivery or an earlier one.
    #[must_use]
    pub fn answer(self) -> Option<T> {
        match self {
            Self::First(answer) | Self::Duplicate(answer) => Some(answer),
            _ => None,
        }
    }
}
