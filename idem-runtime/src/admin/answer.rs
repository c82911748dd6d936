//! An answer that is recorded by hand.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{Codec, Json, Kept, keep_json};
use crate::error::Error;
use crate::identity::RecordId;
use crate::record::{Recorded, TombstoneReason};

const CODEC: &str = <Json as Codec<(), ()>>::ID;

/// Writes an answer as the codec `Json` does. What a call would make a tombstone
/// of is refused: whoever settles by hand can give another one.
pub(super) fn typed<T, E>(
    id: &RecordId,
    answer: &Result<T, E>,
    limit: usize,
) -> Result<Recorded, Error>
where
    T: Serialize + DeserializeOwned,
    E: Serialize + DeserializeOwned,
{
    let bytes = match keep_json(answer, limit) {
        Kept::Bytes(bytes) => bytes,
        Kept::Nothing(reason) => return Err(unkept(reason)),
    };
    if serde_json::from_slice::<Result<T, E>>(&bytes).is_err() {
        return Err(unkept(TombstoneReason::NotDecodable));
    }
    Ok(Recorded::new(id, CODEC, answer.is_err(), bytes))
}

/// Takes the JSON of an `Ok` as it is.
pub(super) fn json(id: &RecordId, value: &str, limit: usize) -> Result<Recorded, Error> {
    // Read as far as a type would, which refuses more than being skipped.
    if serde_json::from_str::<serde_json::Value>(value).is_err() {
        return Err(Error::misuse_at_start(
            "the answer to record is not one JSON value; nothing was changed",
        ));
    }
    let bytes = format!("{{\"Ok\":{value}}}").into_bytes();
    if bytes.len() > limit {
        return Err(unkept(TombstoneReason::TooLarge));
    }
    Ok(Recorded::new(id, CODEC, false, bytes))
}

fn unkept(reason: TombstoneReason) -> Error {
    Error::misuse_at_start(format!(
        "the answer to record could not be replayed ({reason}); nothing was changed"
    ))
}
