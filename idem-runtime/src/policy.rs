//! The questions of what happens when things go wrong, and their answers.

use std::time::Duration;

/// How long an answer is kept, from its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// For this long. Zero is refused when the call is made.
    For(Duration),
    /// For ever: sweep keeps it, until it is [forgotten](crate::admin::RecordRef::forget).
    Forever,
}

impl Ttl {
    /// Creates a TTL of whole microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self::For(Duration::from_micros(us))
    }

    /// Returns the microseconds to store; none is for ever.
    pub(crate) fn micros(self) -> Option<i64> {
        match self {
            Self::For(duration) => {
                Some(crate::clock::micros(duration)).filter(|us| *us != i64::MAX)
            }
            Self::Forever => None,
        }
    }
}

impl From<Duration> for Ttl {
    fn from(duration: Duration) -> Self {
        Self::For(duration)
    }
}

/// What a call does while another attempt with its key runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnInProgress {
    /// Waits this long for the answer, then [`Error::InProgress`](crate::Error::InProgress).
    Wait(Duration),
    /// Answers [`Error::InProgress`](crate::Error::InProgress) at once.
    Reject,
}

impl OnInProgress {
    /// Waits 30 seconds.
    pub const DEFAULT: Self = Self::Wait(Duration::from_secs(30));
}

/// What a call does when an earlier attempt ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnUnknown {
    /// Answers [`Error::UnknownOutcome`](crate::Error::UnknownOutcome) until
    /// somebody settles it.
    #[default]
    Refuse,
    /// At least once: runs the body again, at most five times.
    Rerun,
    /// Asks the outside world first.
    Recover,
}

/// What a call does when its whole key is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMissingKey {
    /// Answers [`Error::InvalidKey`](crate::Error::InvalidKey).
    #[default]
    Error,
    /// Runs the body without any protection.
    Run,
}

/// What a call does when a newer version of its key is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnStale {
    /// Answers [`Error::Stale`](crate::Error::Stale).
    #[default]
    Error,
    /// Gives the newest recorded answer, without running: it is of another
    /// version, and of another payload.
    Replay,
}

/// What an `Err` of the body says about its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// It is the answer: record and replay it.
    Store,
    /// Nothing happened: the next caller runs.
    Release,
    /// The effect may or may not have happened.
    Unknown,
}

/// What the outside world says about an attempt that ended without an answer.
///
/// ```
/// # #[derive(Clone, serde::Serialize, serde::Deserialize)] struct Charge;
/// use idem::Recovered;
///
/// fn found(charges: &[Charge]) -> Recovered<Charge> {
///     match charges {
///         [] => Recovered::NotDone,
///         [charge] => Recovered::Done(charge.clone()),
///         _ => Recovered::Unknown,
///     }
/// }
/// # assert!(matches!(found(&[]), Recovered::NotDone));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered<T> {
    /// The effect happened, and this is its answer: it is recorded and replayed.
    Done(T),
    /// Nothing happened: the body runs, in the same attempt.
    NotDone,
    /// It cannot be told now: the outcome stays unknown and is asked for again.
    Unknown,
}
