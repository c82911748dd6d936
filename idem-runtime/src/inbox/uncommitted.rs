//! What will have become of a delivery when its transaction has ended.

use super::Received;
use crate::delivery::Delivery;

/// What becomes of a delivery in the caller's transaction, which has not ended
/// yet: nothing may be acknowledged before that.
///
/// First end the transaction, as [`must_roll_back`](Self::must_roll_back) says;
/// then ask [`ended`](Self::ended). If the commit fails, tell the broker to
/// deliver again: either nothing has happened, or the next delivery is a duplicate.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "end the transaction as `must_roll_back` says, then tell the broker what `ended().delivery()` says"]
pub struct Uncommitted<T, E>(pub(super) Received<T, E>);

impl<T, E> Uncommitted<T, E> {
    /// Returns whether the caller's transaction must be rolled back: the handler
    /// failed and that is not recorded, or the engine has no answer. A commit
    /// would make the outcome unknown, and park the message.
    ///
    /// Otherwise commit. What is neither [`Received::First`] nor a failure left
    /// nothing in the transaction.
    #[must_use]
    pub fn must_roll_back(&self) -> bool {
        match &self.0 {
            // A failure that is parked is one that was recorded.
            Received::Failed { delivery, .. } => *delivery != Delivery::Park,
            Received::Refused(_) => true,
            Received::First(_)
            | Received::Duplicate(_)
            | Received::InProgress { .. }
            | Received::Unknown { .. }
            | Received::Rejected { .. }
            | Received::OverLimit { .. } => false,
        }
    }

    /// Returns what became of the delivery, now that the transaction has ended
    /// as [`must_roll_back`](Self::must_roll_back) says.
    pub fn ended(self) -> Received<T, E> {
        self.0
    }
}
