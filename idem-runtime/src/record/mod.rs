//! The record: the row that stands for one key.
//!
//! States and who may change them are in [`transition`](crate::transition).

mod note;
mod state;

use serde::{Deserialize, Deserializer, Serialize, de};
use sha2::{Digest as _, Sha256};

pub use self::note::{Label, Note};
pub use self::state::{Row, Standing, State, TombstoneReason, UnknownReason};
use crate::identity::{Fingerprint, RecordId};
use crate::version::Version;

/// The random owner token of an attempt, made before the first byte is sent.
///
/// Sending a reservation again with the same claim is answered "yours", so a
/// lost reply never locks out its own caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim([u8; 16]);

impl Claim {
    /// Draws a claim from the operating system.
    ///
    /// # Errors
    /// If the operating system has no randomness to give.
    pub fn random() -> Result<Self, crate::StoreError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| {
            crate::StoreError::new(
                crate::StoreErrorKind::Permanent,
                "the operating system gave no random bytes for a claim",
            )
        })?;
        Ok(Self(bytes))
    }

    /// Wraps bytes read from a store.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to store.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A claim is a capability: whoever knows it may end the attempt.
        write!(f, "Claim({:02x}{:02x}..)", self.0[0], self.0[1])
    }
}

/// One labelled digest of a payload element, to name what differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The element's source text, or its position.
    pub label: String,
    /// A keyed digest of record, position and value.
    pub digest: [u8; 8],
}

/// A recorded answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The codec's stable id.
    pub codec: String,
    /// Whether the answer is an `Err`.
    pub failed: bool,
    /// What the codec wrote.
    pub bytes: Vec<u8>,
    /// [`Recorded::digest_of`] when it was recorded.
    pub digest: [u8; 32],
}

impl Recorded {
    /// Creates an answer of this record.
    #[must_use]
    pub fn new(id: &RecordId, codec: &str, failed: bool, bytes: Vec<u8>) -> Self {
        Self {
            digest: Self::digest_of(id, codec, &bytes),
            codec: codec.to_owned(),
            failed,
            bytes,
        }
    }

    /// Computes the digest that ties bytes to their record and codec, so that
    /// a flipped bit or a swapped row shows.
    #[must_use]
    pub fn digest_of(id: &RecordId, codec: &str, bytes: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(id.as_bytes());
        hash.update([u8::try_from(codec.len()).unwrap_or(u8::MAX)]);
        hash.update(codec);
        hash.update(bytes);
        hash.finalize().into()
    }

    /// Returns whether the bytes are those that were recorded for `id`.
    #[must_use]
    pub fn is_intact(&self, id: &RecordId) -> bool {
        self.digest == Self::digest_of(id, &self.codec, &self.bytes)
    }
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the bytes: they are the user's answer.
        f.debug_struct("Recorded")
            .field("codec", &self.codec)
            .field("failed", &self.failed)
            .field("len", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// The order-preserving bytes of a version, at most 32; compared as bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct VersionBytes(Vec<u8>);

impl VersionBytes {
    /// The most bytes a version has.
    pub const MAX_LEN: usize = 32;

    /// Wraps bytes; more than [`MAX_LEN`](Self::MAX_LEN) are none.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() <= Self::MAX_LEN).then_some(Self(bytes))
    }

    /// Returns the bytes of a version, to compare with [`Error::Stale`](crate::Error::Stale).
    #[must_use]
    pub fn of<V: Version + ?Sized>(version: &V) -> Self {
        const {
            assert!(
                V::MAX_LEN <= Self::MAX_LEN,
                "a version has at most 32 bytes, and this type can have more"
            );
        }
        let mut bytes = Vec::with_capacity(V::MAX_LEN);
        version.write(&mut bytes);
        Self(bytes)
    }

    /// Returns the bytes to store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for VersionBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the bytes: they are the user's argument, and errors are logged.
        write!(f, "VersionBytes({} bytes)", self.0.len())
    }
}

impl<'de> Deserialize<'de> for VersionBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::deserialize(deserializer)?)
            .ok_or_else(|| de::Error::custom("a version has at most 32 bytes"))
    }
}

/// The row that stands for one key. Times are microseconds of the store's clock.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// Primary key.
    pub id: RecordId,
    /// The operation's name, for operators.
    pub operation: String,
    /// Text for operators, in clear.
    pub label: Option<Label>,
    /// Digest of the scope, to find a tenant's records.
    pub scope: Option<[u8; 32]>,
    /// Digest of the payload.
    pub fingerprint: Fingerprint,
    /// What the payload consists of.
    pub elements: Vec<Element>,
    /// Where the record stands.
    pub state: State,
    /// Grows with every reservation, also over released and expired ones.
    pub fence: i64,
    /// Counts attempts since the key was fresh, starting at 1.
    pub attempt: i32,
    /// The last attempt's owner token.
    pub claim: Claim,
    /// Takeovers since the key was fresh or released.
    pub takeovers: i32,
    /// Whether the running attempt took over a lapsed or unknown one.
    pub doubt: bool,
    /// When the lease ends. A running record without one never lapses.
    pub lease_until_us: Option<i64>,
    /// When the last attempt was reserved.
    pub started_us: i64,
    /// When the last attempt ended.
    pub finished_us: Option<i64>,
    /// When a finished or released record counts as absent; none is never.
    pub expires_us: Option<i64>,
    /// Since when the outcome is unknown; kept while a takeover runs.
    pub since_us: Option<i64>,
    /// When a recovery may ask the outside world again.
    pub not_before_us: Option<i64>,
    /// Code of an [`UnknownReason`] or [`TombstoneReason`].
    pub reason: Option<i16>,
    /// The recorded answer.
    pub answer: Option<Recorded>,
    /// The highest version whose answer was an `Ok`.
    pub version_applied: Option<VersionBytes>,
    /// The version of the recorded answer.
    pub version_recorded: Option<VersionBytes>,
    /// The version of the running attempt.
    pub version_running: Option<VersionBytes>,
    /// The payload's digest of the recorded answer while a newer version runs.
    pub recorded_fingerprint: Option<Fingerprint>,
    /// The record this one is a part of.
    pub parent: Option<RecordId>,
}

/// The first digits of a digest: all of it is of no use to a reader.
struct ShortDigest([u8; 32]);

impl std::fmt::Debug for ShortDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first = self.0[..6].iter().map(|byte| format!("{byte:02x}"));
        write!(f, "Digest({})", first.collect::<String>())
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record")
            .field("id", &self.id)
            .field("operation", &self.operation)
            .field("label", &self.label)
            .field("scope", &self.scope.map(ShortDigest))
            .field("fingerprint", &self.fingerprint)
            .field("elements", &self.elements)
            .field("state", &self.state)
            .field("fence", &self.fence)
            .field("attempt", &self.attempt)
            .field("claim", &self.claim)
            .field("takeovers", &self.takeovers)
            .field("doubt", &self.doubt)
            .field("lease_until_us", &self.lease_until_us)
            .field("started_us", &self.started_us)
            .field("finished_us", &self.finished_us)
            .field("expires_us", &self.expires_us)
            .field("since_us", &self.since_us)
            .field("not_before_us", &self.not_before_us)
            .field("reason", &self.reason)
            .field("answer", &self.answer)
            .field("version_applied", &self.version_applied)
            .field("version_recorded", &self.version_recorded)
            .field("version_running", &self.version_running)
            .field("recorded_fingerprint", &self.recorded_fingerprint)
            .field("parent", &self.parent)
            .finish()
    }
}

impl Record {
    fn row(&self) -> Row {
        Row {
            state: self.state,
            lease_until_us: self.lease_until_us,
            expires_us: self.expires_us,
        }
    }

    /// Returns whether the record is finished or released and past its TTL:
    /// such a record counts as absent, before any sweep.
    #[must_use]
    pub fn is_expired(&self, now_us: i64) -> bool {
        self.row().is_expired(now_us)
    }

    /// Returns whether the holder is late by more than `grace`: dead, paused
    /// or cut off. A missing lease is not a lapsed one.
    #[must_use]
    pub fn is_lapsed(&self, now_us: i64, grace_us: i64) -> bool {
        self.row().is_lapsed(now_us, grace_us)
    }

    /// Returns where the record stands; none if it has expired, which counts as
    /// absent.
    #[must_use]
    pub fn standing(&self, now_us: i64, grace_us: i64) -> Option<Standing> {
        Standing::of(&self.row(), now_us, grace_us)
    }

    /// Returns whether sweep may delete the record.
    #[must_use]
    pub fn is_sweepable(&self, now_us: i64, grace_us: i64) -> bool {
        // The highest version applied is what makes a late message stale.
        self.version_applied.is_none() && self.is_expired(now_us.saturating_sub(grace_us))
    }

    /// Returns the labels of the elements in which `other` differs.
    #[must_use]
    pub fn differs(&self, other: &[Element]) -> Vec<String> {
        let longest = if other.len() > self.elements.len() {
            other
        } else {
            &self.elements
        };
        (0..longest.len())
            .filter(|&i| self.elements.get(i).map(|e| e.digest) != other.get(i).map(|e| e.digest))
            .map(|i| other.get(i).unwrap_or(&longest[i]).label.clone())
            .collect()
    }
}
