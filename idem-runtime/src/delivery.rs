//! What a queue consumer tells its broker about one delivery.

use std::time::Duration;

use crate::error::{Error, StoreErrorKind};
use crate::record::TombstoneReason;

/// When the same call is worth another try although nobody says so.
const SOON: Duration = Duration::from_secs(1);
/// When the store may be back.
const STORE: Duration = Duration::from_secs(5);
/// When somebody may have corrected this process or its store.
const REPAIR: Duration = Duration::from_secs(30);

/// What to tell the broker about a delivery.
///
/// Every broker has the three in some form: acknowledge; deliver again after a
/// delay; put aside for people (a dead-letter queue, a table). Nothing here runs
/// a body: each of them is safe whatever came before.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use idem::{Delivery, Error};
///
/// # async fn charge() -> Result<u32, Error> { Ok(1) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let told = match Delivery::of(&charge().await) {
///     Delivery::Ack => "ack",
///     Delivery::Retry { after } if after < Duration::from_secs(60) => "nack, with a delay",
///     Delivery::Retry { .. } => "nack, with the longest delay that the broker has",
///     Delivery::Park => "dead-letter",
/// };
/// assert_eq!(told, "ack");
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The work is done: acknowledge, and never see the message again.
    Ack,
    /// Not now: deliver it again. Never acknowledge it, or it is lost if the
    /// attempt that runs fails.
    Retry {
        /// The least delay that is worth it. A broker may wait longer.
        after: Duration,
    },
    /// Another delivery changes nothing: put it aside until people have looked.
    Park,
}

impl Delivery {
    /// Returns what to do with the delivery of a call that ended so: an `Ok` is
    /// [`Ack`](Self::Ack), an `Err` is [`Error::delivery`].
    #[must_use]
    pub fn of<T>(result: &Result<T, Error>) -> Self {
        match result {
            Ok(_) => Self::Ack,
            Err(error) => error.delivery(),
        }
    }

    /// Returns whether the message may be forgotten by the broker.
    #[must_use]
    pub fn is_ack(self) -> bool {
        self == Self::Ack
    }
}

impl Error {
    /// Returns what a queue consumer does with the delivery that met this error.
    ///
    /// - **Done** is acknowledged: a tombstone, whose body ran to its end in an
    ///   earlier delivery, and whose consumer had the answer then; a version older
    ///   than the recorded one.
    /// - **Not now** comes again: another attempt runs, a recovery asks later,
    ///   the process shuts down. So does what is wrong with this process or its
    ///   store and not with the message (no engine, misuse, every error of the
    ///   store): parking would empty the queue into the dead letters.
    /// - **A matter of the message** is parked: an outcome in doubt, another
    ///   payload under the same id, no usable id, a failure that is recorded, a
    ///   damaged answer, a body that calls itself.
    ///
    /// So what is [retryable](Self::is_retryable) is never parked, and nothing
    /// that may still be undone is acknowledged. `docs/errors.md` has it error by
    /// error.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use idem::{Delivery, Error};
    ///
    /// let running = Error::InProgress { retry_after: Duration::from_secs(3) };
    /// let after = Duration::from_secs(3);
    /// assert_eq!(running.delivery(), Delivery::Retry { after });
    /// let reused = Error::PayloadMismatch { differs: vec!["amount".to_owned()] };
    /// assert_eq!(reused.delivery(), Delivery::Park);
    /// ```
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        let retry = |after| Delivery::Retry { after };
        match self {
            Self::InProgress { retry_after }
            | Self::UnknownOutcome {
                retry_after: Some(retry_after),
                ..
            } => retry(*retry_after),
            Self::Superseded | Self::ShuttingDown => retry(SOON),
            Self::Store(error) | Self::NotRecorded(error) => retry(match error.kind() {
                StoreErrorKind::Transient => STORE,
                StoreErrorKind::Permanent | StoreErrorKind::Misconfigured => REPAIR,
            }),
            Self::NoEngine | Self::Misuse { .. } => retry(REPAIR),
            // A newer one is recorded, so this one has nothing left to say.
            Self::Stale { .. } => Delivery::Ack,
            // Done, for all that can be read; what cannot is for people.
            Self::NotReplayable { reason } if *reason != TombstoneReason::Damaged => Delivery::Ack,
            Self::NotReplayable { .. }
            | Self::UnknownOutcome { .. }
            | Self::PayloadMismatch { .. }
            | Self::InvalidKey { .. }
            | Self::Fingerprint { .. }
            | Self::Failed { .. }
            | Self::Reentrant
            | Self::NoContext
            | Self::Step { .. } => Delivery::Park,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::RecordId;
    use crate::record::UnknownReason;
    use crate::{StepReason, StoreError};

    fn unknown(retry_after: Option<Duration>) -> Error {
        Error::UnknownOutcome {
            record: RecordId::from_bytes([7; 32]),
            exhausted: false,
            reason: UnknownReason::Lapsed,
            retry_after,
        }
    }

    fn text() -> String {
        "text".to_owned()
    }

    /// Every error with what becomes of its delivery.
    fn table() -> Vec<(Error, Delivery)> {
        let after = Duration::from_millis(1_234);
        let retry = |after| Delivery::Retry { after };
        let store = |kind| Error::Store(StoreError::new(kind, "a fault"));
        let buried = |reason| Error::NotReplayable { reason };
        let mut table = vec![
            (Error::InProgress { retry_after: after }, retry(after)),
            (Error::PayloadMismatch { differs: vec![] }, Delivery::Park),
            (unknown(Some(after)), retry(after)),
            (unknown(None), Delivery::Park),
            (Error::Superseded, retry(SOON)),
            (Error::InvalidKey { reason: text() }, Delivery::Park),
            (
                Error::Fingerprint {
                    path: text(),
                    reason: text(),
                },
                Delivery::Park,
            ),
            (Error::Failed { message: text() }, Delivery::Park),
            (Error::Reentrant, Delivery::Park),
            (Error::NoEngine, retry(REPAIR)),
            (Error::NoContext, Delivery::Park),
            (Error::Misuse { reason: text() }, retry(REPAIR)),
            (Error::ShuttingDown, retry(SOON)),
            (Error::Stale { applied: None }, Delivery::Ack),
            (Error::step("a", StepReason::Changed), Delivery::Park),
            (
                Error::NotRecorded(StoreError::new(StoreErrorKind::Transient, "a fault")),
                retry(STORE),
            ),
            (store(StoreErrorKind::Transient), retry(STORE)),
            (store(StoreErrorKind::Permanent), retry(REPAIR)),
            (store(StoreErrorKind::Misconfigured), retry(REPAIR)),
            (buried(TombstoneReason::Damaged), Delivery::Park),
        ];
        for reason in [
            TombstoneReason::TooLarge,
            TombstoneReason::NotEncodable,
            TombstoneReason::NotDecodable,
            TombstoneReason::OtherCodec,
            TombstoneReason::Streamed,
            TombstoneReason::Withheld,
        ] {
            table.push((buried(reason), Delivery::Ack));
        }
        table
    }

    /// A new variant does not compile here before it has a line in the table.
    fn place(error: &Error) -> usize {
        match error {
            Error::InProgress { .. } => 0,
            Error::PayloadMismatch { .. } => 1,
            Error::UnknownOutcome { .. } => 2,
            Error::Superseded => 3,
            Error::NotReplayable { .. } => 4,
            Error::InvalidKey { .. } => 5,
            Error::Fingerprint { .. } => 6,
            Error::Failed { .. } => 7,
            Error::Reentrant => 8,
            Error::NoEngine => 9,
            Error::NoContext => 10,
            Error::Misuse { .. } => 11,
            Error::ShuttingDown => 12,
            Error::Store(_) => 13,
            Error::Stale { .. } => 14,
            Error::Step { .. } => 15,
            Error::NotRecorded(_) => 16,
        }
    }
    const VARIANTS: usize = 17;

    #[test]
    fn every_error_has_its_delivery() {
        let mut seen = [false; VARIANTS];
        for (error, expected) in table() {
            assert_eq!(error.delivery(), expected, "{error:?}");
            assert_eq!(Delivery::of::<()>(&Err(error.clone())), expected);
            seen[place(&error)] = true;
        }
        assert_eq!(seen, [true; VARIANTS]);
        assert_eq!(Delivery::of(&Ok(1)), Delivery::Ack);
    }

    #[test]
    fn what_is_retryable_comes_again_and_nothing_open_is_acknowledged() {
        for (error, delivery) in table() {
            if error.is_retryable() {
                assert!(matches!(delivery, Delivery::Retry { .. }), "{error:?}");
            }
            let is_done = matches!(error, Error::NotReplayable { .. } | Error::Stale { .. });
            assert!(!delivery.is_ack() || is_done, "{error:?}");
        }
    }
}
