//! How an answer is stored.

mod faithful;
mod json;

pub use self::json::Json;
pub(crate) use self::json::keep as keep_json;
use crate::record::TombstoneReason;

/// Writes answers as bytes and reads them back.
///
/// `T` is the answer of an `Ok`; `K` is what is kept of an `Err`: the error
/// itself, its text, or nothing. The bounds on both are the codec's own.
///
/// A codec never changes what it writes under one [`ID`](Self::ID): a record
/// that was written under another id is refused, not guessed at.
pub trait Codec<T, K>: 'static {
    /// The stable id stored beside the bytes, 1 to 32 characters.
    const ID: &'static str;

    /// Writes the answer, and returns it with what is to be kept of it.
    fn encode(
        answer: Result<T, K>,
        limit: usize,
    ) -> impl Future<Output = (Result<T, K>, Kept)> + Send;

    /// Reads an answer back.
    ///
    /// # Errors
    /// If the bytes are no answer of this type: the call then gets
    /// [`Error::NotReplayable`](crate::Error::NotReplayable), never a run.
    fn decode(bytes: &[u8]) -> Result<Result<T, K>, CodecError>;

    /// Says whether an `Ok` tells of a failure all the same, such as a response
    /// with status 503: then one that an error of the engine's own may have
    /// brought about is not recorded.
    fn is_failure(answer: &T) -> bool {
        let _ = answer;
        false
    }
}

/// What a codec keeps of an answer.
#[derive(Clone, PartialEq, Eq)]
pub enum Kept {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing: the record becomes a tombstone.
    Nothing(TombstoneReason),
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => f.debug_tuple("Bytes").field(&bytes.len()).finish(),
            Self::Nothing(reason) => f.debug_tuple("Nothing").field(reason).finish(),
        }
    }
}

/// Stored bytes are no answer of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored bytes are no answer of this type")]
pub struct CodecError;
