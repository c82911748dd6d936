//! The steps of a body that have finished, kept beside its record.

use sha2::{Digest as _, Sha256};

use super::Holder;
use crate::identity::RecordId;

/// A step of a body that has finished; see [`step`](crate::step).
#[derive(Clone, PartialEq, Eq)]
pub struct Step {
    /// What the body calls it: 1 to 128 bytes, no control characters.
    pub label: String,
    /// How many steps the attempt had begun before it; none if it began while
    /// another one ran, whose order is not compared.
    pub position: Option<i32>,
    /// Digest of the payload and version that it belongs to: an attempt that
    /// applies another one must not take it for its own.
    pub basis: [u8; 32],
    /// The codec's stable id.
    pub codec: String,
    /// What the codec wrote.
    pub bytes: Vec<u8>,
    /// [`Step::is_intact`] compares it.
    pub digest: [u8; 32],
}

impl Step {
    /// Creates a step of this record.
    #[must_use]
    pub fn new(
        id: &RecordId,
        label: &str,
        position: Option<i32>,
        basis: [u8; 32],
        codec: &str,
        bytes: Vec<u8>,
    ) -> Self {
        let mut step = Self {
            label: label.to_owned(),
            position,
            basis,
            codec: codec.to_owned(),
            bytes,
            digest: [0; 32],
        };
        step.digest = step.digest_for(id);
        step
    }

    /// Returns whether nothing of it has changed since it was recorded for
    /// `id`, so that a flipped bit or a swapped row shows.
    #[must_use]
    pub fn is_intact(&self, id: &RecordId) -> bool {
        self.digest == self.digest_for(id)
    }

    fn digest_for(&self, id: &RecordId) -> [u8; 32] {
        let length = |text: &str| u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes();
        let mut hash = Sha256::new();
        hash.update(id.as_bytes());
        hash.update(length(&self.label));
        hash.update(&self.label);
        hash.update(self.position.unwrap_or(-1).to_be_bytes());
        hash.update(self.basis);
        hash.update(length(&self.codec));
        hash.update(&self.codec);
        hash.update(&self.bytes);
        hash.finalize().into()
    }
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither the label nor the bytes: they are the user's.
        f.debug_struct("Step")
            .field("position", &self.position)
            .field("codec", &self.codec)
            .field("len", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// A request to keep a finished step.
#[derive(Debug, Clone)]
pub struct RecordStep {
    /// The attempt.
    pub holder: Holder,
    /// What it finished.
    pub step: Step,
}
