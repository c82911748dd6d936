//! Where a record stands, and the reasons for it.

use serde::{Deserialize, Serialize};

/// What a record's row says about its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// One attempt holds the key until its lease lapses.
    InProgress,
    /// The body declared that nothing happened; the next caller runs.
    Released,
    /// An answer is recorded.
    Completed,
    /// Done, but the answer cannot be given back.
    Tombstone,
    /// The effect may or may not have happened.
    Unknown,
}

impl State {
    /// Every state, in the order of its code.
    pub const ALL: [Self; 5] = [
        Self::InProgress,
        Self::Released,
        Self::Completed,
        Self::Tombstone,
        Self::Unknown,
    ];

    /// Returns the number stored for this state.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::InProgress => 0,
            Self::Released => 1,
            Self::Completed => 2,
            Self::Tombstone => 3,
            Self::Unknown => 4,
        }
    }

    /// Reads a stored number.
    #[must_use]
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// Where a record stands at the store's time, as an operator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// An attempt runs, within lease and grace.
    InProgress,
    /// Its attempt is late: dead, paused or cut off.
    Lapsed,
    /// The effect may or may not have happened; also an attempt without a
    /// lease, which a transaction left behind by mistake.
    Unknown,
    /// Nothing happened; the next caller runs.
    Released,
    /// An answer is recorded.
    Completed,
    /// Done, but the answer cannot be given back.
    Tombstone,
}

impl Standing {
    /// Every standing, what needs an operator first.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::Lapsed,
        Self::InProgress,
        Self::Tombstone,
        Self::Completed,
        Self::Released,
    ];

    /// Returns whether such records have no expiry.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::InProgress | Self::Lapsed | Self::Unknown)
    }

    /// Returns where a record stands whose row says this; none if it has
    /// expired, which counts as absent.
    #[must_use]
    pub fn of(row: &Row, now_us: i64, grace_us: i64) -> Option<Self> {
        if row.is_expired(now_us) {
            return None;
        }
        Some(match row.state {
            State::InProgress if row.lease_until_us.is_none() => Self::Unknown,
            State::InProgress if row.is_lapsed(now_us, grace_us) => Self::Lapsed,
            State::InProgress => Self::InProgress,
            State::Unknown => Self::Unknown,
            State::Released => Self::Released,
            State::Completed => Self::Completed,
            State::Tombstone => Self::Tombstone,
        })
    }
}

/// As much of a record's row as says where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its state.
    pub state: State,
    /// When the lease ends. A running record without one never lapses.
    pub lease_until_us: Option<i64>,
    /// When a finished or released record counts as absent; none is never.
    pub expires_us: Option<i64>,
}

impl Row {
    pub(super) fn is_expired(&self, now_us: i64) -> bool {
        match self.state {
            State::Released | State::Completed | State::Tombstone => {
                self.expires_us.is_some_and(|at| at < now_us)
            }
            // Forgetting that we do not know would be a second run.
            State::InProgress | State::Unknown => false,
        }
    }

    pub(super) fn is_lapsed(&self, now_us: i64, grace_us: i64) -> bool {
        self.state == State::InProgress
            && self
                .lease_until_us
                .is_some_and(|until| until.saturating_add(grace_us) < now_us)
    }
}

/// How an attempt ended whose outcome is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum UnknownReason {
    /// Its lease lapsed: the process died, was paused or was cut off.
    Lapsed,
    /// Its body panicked.
    Panicked,
    /// Its body returned an error that leaves the effect in doubt.
    Failed,
    /// Its caller went away under `on_cancel = abandon`.
    Cancelled,
    /// Its process shut down before the body ended.
    ShutDown,
    /// A recovery asked the outside world and got no decision.
    Undecided,
    /// A call of another operation inside it found no answer.
    Nested,
    /// It ran in its caller's transaction, which was committed before it had
    /// ended, or after it had ended without an answer.
    Unfinished,
}

/// Why a finished record has no answer to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TombstoneReason {
    /// The answer was above the size limit.
    TooLarge,
    /// The codec could not write the answer.
    NotEncodable,
    /// What the codec wrote does not read back as the same value.
    NotDecodable,
    /// The stored bytes are not those that were recorded. Never stored.
    Damaged,
    /// The answer was recorded by another codec. Never stored.
    OtherCodec,
    /// The answer is a stream that did not end while it was being recorded.
    Streamed,
    /// The body asked that its answer not be kept.
    Withheld,
}

macro_rules! codes {
    ($name:ident { $($variant:ident = $code:literal, $text:literal;)* }) => {
        impl $name {
            /// Returns the number stored for this reason.
            #[must_use]
            pub const fn code(self) -> i16 {
                match self { $(Self::$variant => $code,)* }
            }

            /// Reads a stored number.
            #[must_use]
            pub const fn from_code(code: i16) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $text,)* })
            }
        }
    };
}

codes!(UnknownReason {
    Lapsed = 1, "its lease lapsed";
    Panicked = 2, "its body panicked";
    Failed = 3, "its body returned an error that leaves the effect in doubt";
    Cancelled = 4, "its caller went away";
    ShutDown = 5, "its process shut down";
    Undecided = 6, "recovery got no decision";
    Nested = 7, "a call inside it found no answer";
    Unfinished = 8, "its transaction went on without an answer";
});

codes!(TombstoneReason {
    TooLarge = 20, "it was above the size limit";
    NotEncodable = 21, "the codec could not write it";
    NotDecodable = 22, "the stored form does not read back as the same value";
    Damaged = 23, "the stored bytes are damaged";
    OtherCodec = 24, "it was recorded by another codec";
    Streamed = 25, "it is a stream that did not end in time";
    Withheld = 26, "it is not to be kept";
});
