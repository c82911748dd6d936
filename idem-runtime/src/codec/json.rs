//! Answers as JSON.

use std::future::ready;

use serde::Serialize;

use super::{Codec, CodecError, Kept, faithful};
use crate::answer::{Recordable, RecordableError};
use crate::record::TombstoneReason;

/// Stores answers as JSON: `{"Ok":…}` or `{"Err":…}`.
///
/// What JSON cannot give back counts as not decodable: NaN and infinities, and
/// a `Some(v)` whose `v` prints as `null`. Adding `Option` or
/// `#[serde(default)]` fields to a type is safe; other changes make stored
/// answers unreadable, which is [`Error::NotReplayable`](crate::Error).
#[derive(Debug, Clone, Copy)]
pub struct Json;

impl<T, K> Codec<T, K> for Json
where
    T: Recordable + Send,
    K: RecordableError + Send,
{
    const ID: &'static str = "json/1";

    fn encode(
        answer: Result<T, K>,
        limit: usize,
    ) -> impl Future<Output = (Result<T, K>, Kept)> + Send {
        let kept = keep(&answer, limit);
        ready((answer, kept))
    }

    fn decode(bytes: &[u8]) -> Result<Result<T, K>, CodecError> {
        serde_json::from_slice(bytes).map_err(|_| CodecError)
    }
}

/// Writes a value, unless it is too large or would not come back as it is.
pub(crate) fn keep<A: Serialize>(answer: &A, limit: usize) -> Kept {
    if !faithful::is_faithful(answer) {
        return Kept::Nothing(TombstoneReason::NotDecodable);
    }
    let mut bytes = Limited {
        bytes: Vec::with_capacity(128),
        limit,
        full: false,
    };
    match serde_json::to_writer(&mut bytes, answer) {
        Ok(()) => Kept::Bytes(bytes.bytes),
        Err(_) if bytes.full => Kept::Nothing(TombstoneReason::TooLarge),
        Err(_) => Kept::Nothing(TombstoneReason::NotEncodable),
    }
}

/// Stops a writer at the limit, instead of after it has written everything.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl std::io::Write for Limited {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len().saturating_add(more.len()) > self.limit {
            self.full = true;
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
