//! What a call may answer instead of running the body.
//!
//! Every message says what happened, whether the body ran in this call (if it
//! is about a call), and what to do. None contains a key, an argument or a stored value, except
//! [`Error::Failed`], whose text the body itself wrote.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::identity::RecordId;
use crate::record::{TombstoneReason, UnknownReason, VersionBytes};

/// Why a call gave no answer of the body's.
///
/// The predicates ([`is_retryable`](Self::is_retryable), …) answer the common
/// questions without a match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another attempt with the same key holds its lease, and the wait for it
    /// ended: it is running, or its process died a short while ago.
    #[error(
        "another attempt with this key holds its lease: it is running, or its process died; the body did not run in this call; retry in {}",
        seconds(*retry_after)
    )]
    InProgress {
        /// When it is worth asking again.
        retry_after: Duration,
    },

    /// The key was used before with another payload.
    #[error(
        "this key was used before with another payload (differs: {}); the body did not run; use a new key for a new intent",
        names(differs)
    )]
    PayloadMismatch {
        /// The labels of the payload elements that differ, never their values.
        differs: Vec<String>,
    },

    /// An earlier attempt ended without an answer: its effect may have happened.
    #[error(
        "an earlier attempt with this key ended without an answer{} ({reason}{}): its effect may have happened; the body did not run in this call; {}",
        if matches!(reason, UnknownReason::Lapsed | UnknownReason::ShutDown) { ", or still runs without a lease" } else { "" },
        if *.exhausted { ", and no further takeover is allowed" } else { "" },
        settle(record, *retry_after),
    )]
    #[non_exhaustive]
    UnknownOutcome {
        /// The record to look at.
        record: RecordId,
        /// Whether the limit of takeovers was reached.
        exhausted: bool,
        /// How the earlier attempt ended.
        reason: UnknownReason,
        /// When a recovery will ask the outside world again, if one will.
        retry_after: Option<Duration>,
    },

    /// This attempt was replaced while its body ran.
    #[error(
        "this attempt lost its lease to another one, or its record was removed; its body may have run, but nothing of it is recorded; ask again for the recorded answer"
    )]
    Superseded,

    /// A newer version of this key is recorded, so this one must not run any
    /// more.
    #[error(
        "a newer version of this key is recorded, as applied or as failed; the body did not run; drop this one, or send a version that is newer still"
    )]
    Stale {
        /// The highest version that was applied: whose body returned `Ok`. None
        /// if none was, and lower than the recorded one if that is an `Err`.
        applied: Option<VersionBytes>,
    },

    /// The body ran to its end, but its answer cannot be given back.
    #[error(
        "the work of this key is done, but its answer cannot be replayed ({reason}); the body did not run in this call; do not retry with a new key"
    )]
    NotReplayable {
        /// Why not.
        reason: TombstoneReason,
    },

    /// The key, or a part of it, is missing or blank.
    #[error(
        "this call has no usable key: {reason}; the body did not run; pass a key, or mark an absent part with `idem::optional`"
    )]
    InvalidKey {
        /// What is wrong with it, by position.
        reason: String,
    },

    /// The key or the payload cannot be written in canonical form.
    #[error(
        "a value at {path} of the key, scope or payload has no canonical form ({reason}); the body did not run"
    )]
    Fingerprint {
        /// The field's path, without values.
        path: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The recorded answer is an error that was kept as text.
    #[error("{message}")]
    Failed {
        /// The text of the body's own error, at most 4 KiB.
        message: String,
    },

    /// A step of the body was refused, or its result is lost.
    #[error("step {label:?}: {reason}")]
    Step {
        /// The step's label.
        label: String,
        /// Why, whether it ran, and what to do.
        reason: StepReason,
    },

    /// The body called itself with the key it already holds.
    #[error(
        "this key is already held by the body that makes this call; the inner body did not run; use another key or operation inside"
    )]
    Reentrant,

    /// There is no engine to ask.
    #[error(
        "no engine: pass `engine = ...`, wrap the task in `engine.scope(..)`, or call `idem::install(engine)` at start-up; the body did not run"
    )]
    NoEngine,

    /// There is no attempt whose context could be given.
    #[error(
        "`idem::context()` or `idem::step()` was called outside the body of an idempotent call; pass the context into spawned tasks with `context.scope(..)`"
    )]
    NoContext,

    /// The library is used in a way that it refuses.
    #[error("{reason}")]
    Misuse {
        /// What is wrong, what to do instead, and, if it is about a call, that
        /// the body did not run.
        reason: String,
    },

    /// The engine accepts no further calls, or its runtime ended.
    #[error(
        "the engine is shutting down: the body did not run, or was cut off and its outcome is unknown; retry on another process, which can tell"
    )]
    ShuttingDown,

    /// The body ran in its caller's transaction, and its answer could not be
    /// recorded there.
    #[error(
        "the body ran in its caller's transaction, but its answer could not be recorded in it: {0}; roll the transaction back, which undoes the body; if it is committed all the same, the outcome is unknown"
    )]
    NotRecorded(StoreError),

    /// The store did not do what was asked.
    #[error("{store}; {}", done(.0), store = .0)]
    Store(StoreError),
}

impl Error {
    /// Returns whether the same call may succeed later without anybody's help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InProgress { .. } | Self::ShuttingDown | Self::Superseded => true,
            Self::UnknownOutcome { retry_after, .. } => retry_after.is_some(),
            Self::Store(error) | Self::NotRecorded(error) => {
                error.kind() == StoreErrorKind::Transient
            }
            _ => false,
        }
    }

    /// Returns whether another attempt is running right now.
    #[must_use]
    pub fn is_in_progress(&self) -> bool {
        matches!(self, Self::InProgress { .. })
    }

    /// Returns whether the key was used before with another payload.
    #[must_use]
    pub fn is_mismatch(&self) -> bool {
        matches!(self, Self::PayloadMismatch { .. })
    }

    /// Returns whether a newer version of this key is recorded.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. })
    }

    /// Returns whether an earlier attempt's effect is in doubt.
    #[must_use]
    pub fn is_unknown_outcome(&self) -> bool {
        matches!(self, Self::UnknownOutcome { .. })
    }

    /// Returns when it is worth asking again, where that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::InProgress { retry_after } => Some(*retry_after),
            Self::UnknownOutcome { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub(crate) fn step(label: &str, reason: StepReason) -> Self {
        Self::Step {
            label: label.to_owned(),
            reason,
        }
    }

    /// Of a call.
    pub(crate) fn misuse(reason: impl Into<String>) -> Self {
        Self::Misuse {
            reason: format!("{}; the body did not run", reason.into()),
        }
    }

    /// Of something that is no call, and so has no body.
    pub(crate) fn misuse_at_start(reason: impl Into<String>) -> Self {
        Self::Misuse {
            reason: reason.into(),
        }
    }

    /// Whether an enclosing attempt that fails after this must end unknown:
    /// our own "try later" is no answer. The exceptions are final.
    pub(crate) fn taints(&self) -> bool {
        !matches!(
            self,
            Self::PayloadMismatch { .. }
                | Self::Stale { .. }
                | Self::InvalidKey { .. }
                | Self::Fingerprint { .. }
                | Self::Failed { .. }
        )
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Why a step was refused, or its result is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum StepReason {
    /// The label is empty, too long, or has control characters.
    #[error("a label has 1 to 128 bytes and no control characters; the step did not run")]
    Label,
    /// This attempt has begun a step of this label before.
    #[error(
        "this attempt has begun a step of this label before; the step did not run this time; give each step a label of its own, and retry inside of a step"
    )]
    Repeated,
    /// An earlier attempt finished a step of another label at this place.
    #[error(
        "an earlier attempt finished a step of another label at this place or before it, which this attempt has not asked for; the step did not run; keep labels and their order as they were until this record is settled"
    )]
    Changed,
    /// The step was begun inside of another one.
    #[error(
        "a step cannot begin inside of another one; the step did not run; put them one after the other"
    )]
    Nested,
    /// The store keeps no steps.
    #[error(
        "the store keeps no steps; the step did not run; use another store, or calls with keys of their own"
    )]
    NotSupported,
    /// The body runs in its caller's transaction.
    #[error(
        "a body in a transaction has no steps: it commits as a whole; the step did not run; leave `idem::step` out"
    )]
    InTransaction,
    /// The step ran, and what it gave cannot be kept.
    #[error(
        "its result cannot be kept ({0}); the step ran, and runs again if another attempt takes over; return less, or what JSON gives back"
    )]
    NotKept(TombstoneReason),
    /// What an earlier attempt finished cannot be given back.
    #[error(
        "an earlier attempt finished it, and its result cannot be given back ({0}); the step did not run; settle the record by hand"
    )]
    NotReadable(TombstoneReason),
}

fn names(differs: &[String]) -> String {
    if differs.is_empty() {
        "its elements".to_owned()
    } else {
        differs.join(", ")
    }
}

/// What a failure of the store means for its caller: a misconfigured one also
/// keeps an engine from starting, which is no call.
fn done(error: &StoreError) -> &'static str {
    match error.kind() {
        StoreErrorKind::Misconfigured => "nothing was done",
        StoreErrorKind::Transient | StoreErrorKind::Permanent => "this call ran no body",
    }
}

/// What to do about an unknown outcome.
fn settle(record: &RecordId, retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) => format!(
            "a recovery asks again in {} (record {record})",
            seconds(wait)
        ),
        None => format!("find out, then settle it: `idem show {record}`, or docs/operations.md"),
    }
}

fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{} s", duration.as_secs_f64().ceil())
    }
}

/// What kind of failure a store reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Worth another try: busy, a timeout, a lost connection.
    Transient,
    /// Will fail again: a damaged file, a statement that was refused.
    Permanent,
    /// Settings, schema or secret do not fit: nothing was done.
    Misconfigured,
}

/// A failure of the store.
///
/// It carries the store's own code, and text of ours only: driver messages may
/// hold values, so they go to the log at debug level and not into the error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreError {
    kind: StoreErrorKind,
    code: Option<String>,
    ambiguous: bool,
    what: String,
}

impl StoreError {
    /// Creates an error of which is known that the store did nothing.
    pub fn new(kind: StoreErrorKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            ambiguous: false,
            what: what.into(),
        }
    }

    /// Adds the store's own error code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Says that the store may have done it all the same.
    #[must_use]
    pub fn ambiguous(mut self) -> Self {
        self.ambiguous = true;
        self
    }

    /// Returns what kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns the store's own code: a `SQLite` result code, a SQLSTATE.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Returns whether the store may have done what was asked all the same.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let next = match self.kind {
            StoreErrorKind::Transient => "retry later",
            StoreErrorKind::Permanent => "look at the store; a retry will not help",
            StoreErrorKind::Misconfigured => "correct the configuration",
        };
        write!(f, "the store failed: {}", self.what)?;
        if let Some(code) = &self.code {
            write!(f, " (code {code})")?;
        }
        write!(f, "; {next}")
    }
}

impl std::error::Error for StoreError {}
