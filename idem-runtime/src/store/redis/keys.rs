//! Names of keys.
//!
//! `{prefix:bb}:r:<id>` is a record, `bb` its bucket, the first two digits of its
//! id. What belongs to one bucket has the same hash tag, and so the same slot of
//! a cluster. `prefix:f:<key>` is an entry of a front.

use crate::error::{StoreError, StoreErrorKind};
use crate::identity::RecordId;

const MAX_PREFIX: usize = 64;

/// The keys of one store.
#[derive(Debug)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn new(prefix: String) -> Result<Self, StoreError> {
        let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':');
        if prefix.is_empty() || prefix.len() > MAX_PREFIX || !prefix.bytes().all(known) {
            return Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                "a prefix consists of 1 to 64 letters, digits, and `_`, `-`, `:`",
            ));
        }
        Ok(Self { prefix })
    }

    pub(super) fn record(&self, id: &RecordId) -> Vec<u8> {
        self.of("r", id)
    }

    /// The index of a bucket's open records: in progress or unknown.
    pub(super) fn open(&self, bucket: u8) -> Vec<u8> {
        let mut key = self.bucket(bucket, 5);
        key.extend_from_slice(b":open");
        key
    }

    pub(super) fn open_of(&self, id: &RecordId) -> Vec<u8> {
        self.open(bucket_of(id))
    }

    pub(super) fn audit(&self, id: &RecordId) -> Vec<u8> {
        self.of("a", id)
    }

    pub(super) fn steps(&self, id: &RecordId) -> Vec<u8> {
        self.of("s", id)
    }

    /// An entry of a front. It shares a slot with nothing.
    pub(super) fn front(&self, key: &str) -> Vec<u8> {
        format!("{}:f:{key}", self.prefix).into_bytes()
    }

    pub(super) fn meta(&self) -> Vec<u8> {
        format!("{{{}}}:meta", self.prefix).into_bytes()
    }

    /// All digits of the id: its `Display` shows the first few.
    fn of(&self, what: &str, id: &RecordId) -> Vec<u8> {
        let mut key = self.bucket(bucket_of(id), 66 + what.len());
        key.push(b':');
        key.extend_from_slice(what.as_bytes());
        key.push(b':');
        push_hex(&mut key, id.as_bytes());
        key
    }

    /// What a key begins with, and room for `more` bytes.
    fn bucket(&self, bucket: u8, more: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.prefix.len() + 5 + more);
        key.push(b'{');
        key.extend_from_slice(self.prefix.as_bytes());
        key.push(b':');
        push_hex(&mut key, &[bucket]);
        key.push(b'}');
        key
    }
}

/// Keys are made at each call, and formatting every byte would be a tenth of it.
fn push_hex(key: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        key.push(DIGITS[usize::from(byte >> 4)]);
        key.push(DIGITS[usize::from(byte & 15)]);
    }
}

fn bucket_of(id: &RecordId) -> u8 {
    id.as_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_of_an_id_is_in_its_key_and_a_bucket_shares_a_tag() {
        let keys = Keys::new("shop:eu".to_owned()).unwrap();
        let mut bytes = [0xab; 32];
        let first = RecordId::from_bytes(bytes);
        bytes[31] = 0;
        let second = RecordId::from_bytes(bytes);
        assert_ne!(keys.record(&first), keys.record(&second));
        let record = String::from_utf8(keys.record(&first)).unwrap();
        assert_eq!(record, format!("{{shop:eu:ab}}:r:{}", "ab".repeat(32)));
        let every: [u8; 32] = std::array::from_fn(|at| u8::try_from(at * 8 + 7).unwrap());
        let every = RecordId::from_bytes(every);
        assert_eq!(
            keys.steps(&every),
            format!("{{shop:eu:07}}:s:{}", every.to_hex()).as_bytes()
        );
        assert_eq!(keys.open_of(&first), b"{shop:eu:ab}:open");
        assert!(keys.audit(&first).starts_with(b"{shop:eu:ab}:a:abab"));
        assert_eq!(keys.meta(), b"{shop:eu}:meta");
    }
}
