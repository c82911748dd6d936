//! What stands in a front, as bytes.
//!
//! ```text
//! kind    1   A or H
//! format  1   1
//! digest 32   SHA-256 of the front's key, kind, format and what follows,
//!             without the answer's bytes, which have a digest of their own
//! A: fingerprint 32, usable until 8, expires 1 + 8, finished 8, attempt 4,
//!    failed 1, the answer's digest 32, length of codec 1, codec, answer
//! H: fingerprint 32, usable until 8, lease ends 8
//! ```
//!
//! Numbers are big-endian; times are microseconds since the epoch. Bytes from a
//! front are never trusted: what does not read back whole, under the very key it
//! was written for, is no entry.

use sha2::{Digest as _, Sha256};

use super::front::Kind;
use crate::identity::{Fingerprint, RecordId};
use crate::record::Recorded;

const FORMAT: u8 = 1;
const HEAD: usize = 2 + 32;

/// What a front may answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The payload that it answers.
    pub(super) fingerprint: Fingerprint,
    /// After this it answers nothing.
    pub(super) usable_until_us: i64,
    pub(super) told: Told,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Answer {
        answer: Recorded,
        finished_us: i64,
        attempt: i32,
        expires_us: Option<i64>,
    },
    InProgress {
        lease_ends_us: i64,
    },
}

impl Entry {
    /// Writes the entry for a key of the front; none if its codec has a name
    /// that no codec has.
    pub(super) fn encode(&self, key: &str) -> Option<Vec<u8>> {
        let mut bytes = vec![0; HEAD];
        bytes[1] = FORMAT;
        bytes.extend(self.fingerprint.as_bytes());
        bytes.extend(self.usable_until_us.to_be_bytes());
        let kind = match &self.told {
            Told::InProgress { lease_ends_us } => {
                bytes.extend(lease_ends_us.to_be_bytes());
                Kind::Hint
            }
            Told::Answer {
                answer,
                finished_us,
                attempt,
                expires_us,
            } => {
                bytes.push(u8::from(expires_us.is_some()));
                bytes.extend(expires_us.unwrap_or_default().to_be_bytes());
                bytes.extend(finished_us.to_be_bytes());
                bytes.extend(attempt.to_be_bytes());
                bytes.push(u8::from(answer.failed));
                bytes.extend(answer.digest);
                bytes.push(u8::try_from(answer.codec.len()).ok()?);
                bytes.extend(answer.codec.as_bytes());
                Kind::Answer
            }
        };
        bytes[0] = kind.byte();
        let digest = digest(key, kind, &bytes[HEAD..]);
        bytes[2..HEAD].copy_from_slice(&digest);
        if let Told::Answer { answer, .. } = &self.told {
            bytes.extend(&answer.bytes);
        }
        Some(bytes)
    }

    /// Reads what a front said stands under its key for a record; none if it is
    /// not an entry, not this key's or not whole.
    pub(super) fn decode(bytes: &[u8], key: &str, id: &RecordId) -> Option<Self> {
        let mut rest = Reader(bytes);
        let [kind, format] = rest.take()?;
        let stored: [u8; 32] = rest.take()?;
        let body = rest.0;
        let fingerprint = Fingerprint::from_bytes(rest.take()?);
        let usable_until_us = rest.number()?;
        let kind = Kind::of(&[kind])?;
        let told = match kind {
            Kind::Block => return None,
            Kind::Hint => {
                let lease_ends_us = rest.number()?;
                rest.0
                    .is_empty()
                    .then_some(Told::InProgress { lease_ends_us })?
            }
            Kind::Answer => {
                let expires = (rest.flag()?, rest.number()?);
                let finished_us = rest.number()?;
                let attempt = i32::from_be_bytes(rest.take()?);
                let failed = rest.flag()?;
                let digest = rest.take()?;
                let [length] = rest.take()?;
                let codec = rest.slice(usize::from(length))?;
                let answer = Recorded {
                    codec: std::str::from_utf8(codec).ok()?.to_owned(),
                    failed,
                    bytes: rest.0.to_vec(),
                    digest,
                };
                Told::Answer {
                    answer,
                    finished_us,
                    attempt,
                    expires_us: expires.0.then_some(expires.1),
                }
            }
        };
        let signed = match &told {
            Told::Answer { answer, .. } => &body[..body.len() - answer.bytes.len()],
            Told::InProgress { .. } => body,
        };
        let whole = format == FORMAT && stored == digest(key, kind, signed);
        let intact = match &told {
            Told::Answer { answer, .. } => whole && answer.is_intact(id),
            Told::InProgress { .. } => whole,
        };
        intact.then_some(Self {
            fingerprint,
            usable_until_us,
            told,
        })
    }
}

fn digest(key: &str, kind: Kind, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"idem front entry");
    hash.update([FORMAT, kind.byte()]);
    // The key's length is the same in every instance, so nothing runs into it.
    hash.update(key);
    hash.update(body);
    hash.finalize().into()
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.slice(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "idem-front:00:11";
    const ID: RecordId = RecordId::from_bytes([7; 32]);

    fn entry() -> impl Strategy<Value = Entry> {
        let told = prop_oneof![
            any::<i64>().prop_map(|lease_ends_us| Told::InProgress { lease_ends_us }),
            (
                "[a-z/0-9]{0,20}",
                any::<bool>(),
                prop::collection::vec(any::<u8>(), 0..100),
                any::<i64>(),
                any::<i32>(),
                any::<Option<i64>>(),
            )
                .prop_map(
                    |(codec, failed, bytes, finished_us, attempt, expires_us)| {
                        Told::Answer {
                            answer: Recorded::new(&ID, &codec, failed, bytes),
                            finished_us,
                            attempt,
                            expires_us,
                        }
                    }
                ),
        ];
        (any::<[u8; 32]>(), any::<i64>(), told).prop_map(|(print, usable_until_us, told)| Entry {
            fingerprint: Fingerprint::from_bytes(print),
            usable_until_us,
            told,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_entry_reads_back_as_itself(entry in entry()) {
            let bytes = entry.encode(KEY).unwrap();
            prop_assert_eq!(Entry::decode(&bytes, KEY, &ID), Some(entry));
        }

        #[test]
        fn under_another_key_or_record_it_is_no_entry(entry in entry()) {
            let bytes = entry.encode(KEY).unwrap();
            prop_assert_eq!(Entry::decode(&bytes, "idem-front:00:12", &ID), None);
            let other = RecordId::from_bytes([8; 32]);
            let read = Entry::decode(&bytes, KEY, &other);
            // A hint is tied to its record by the key alone.
            let is_hint = Kind::of(&bytes) == Some(Kind::Hint);
            prop_assert_eq!(read.is_some(), is_hint);
        }

        #[test]
        fn with_one_bit_flipped_it_is_no_entry(entry in entry(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let mut bytes = entry.encode(KEY).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Entry::decode(&bytes, KEY, &ID), None);
        }

        #[test]
        fn cut_or_continued_it_is_no_entry(entry in entry(), at in any::<prop::sample::Index>(), more in 1..20_usize) {
            let bytes = entry.encode(KEY).unwrap();
            prop_assert_eq!(Entry::decode(&bytes[..at.index(bytes.len())], KEY, &ID), None);
            let longer = [bytes, vec![0; more]].concat();
            prop_assert_eq!(Entry::decode(&longer, KEY, &ID), None);
        }

        #[test]
        fn random_bytes_are_no_entry(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0..3_usize) {
            prop_assert_eq!(Entry::decode(&bytes, KEY, &ID), None);
            if bytes.len() > 1 {
                bytes[0] = b"AHB"[kind];
                bytes[1] = FORMAT;
                prop_assert_eq!(Entry::decode(&bytes, KEY, &ID), None);
            }
        }
    }
}
