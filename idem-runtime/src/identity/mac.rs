//! HMAC-SHA-256 of fields, on the compression function itself.
//!
//! Most digests are of two or three blocks, and around these a general
//! interface takes as long as two more. Here the fields are gathered, padded
//! where they lie, and compressed in one go. The tests compare with the crate
//! `hmac`; the published vectors, with two other languages.

use sha2::block_api::compress256;
use sha2::{Digest as _, Sha256};

/// The block of SHA-256, which is what HMAC makes of any key.
const BLOCK: usize = 64;
/// How much is gathered before any of it is compressed: whole blocks.
const GATHERED: usize = 3 * BLOCK;
/// What a message ends with: one bit, and its length in bits.
const END: u8 = 0x80;
const LENGTH: usize = 8;

type State = [u32; 8];

/// The state before the first block (FIPS 180-4, section 5.3.3).
const START: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// A digest that takes its fields. What many begin with is computed once, and
/// copied.
#[derive(Clone)]
pub(super) struct Mac {
    inner: State,
    outer: State,
    /// How many bytes are in `inner`.
    compressed: u64,
    /// Bytes, then zeros; the last block is for the end.
    gathered: [u8; GATHERED + BLOCK],
    /// How many there are: below `GATHERED`, except while they are compressed.
    len: usize,
}

impl Mac {
    /// Takes a key of any length.
    pub(super) fn new(key: &[u8]) -> Self {
        let key = block(key);
        let keyed = |pad: u8| {
            let mut state = START;
            compress256(&mut state, &[key.map(|byte| byte ^ pad)]);
            state
        };
        Self {
            inner: keyed(0x36),
            outer: keyed(0x5c),
            compressed: number(BLOCK),
            gathered: [0; GATHERED + BLOCK],
            len: 0,
        }
    }

    /// The same with one more field, to be begun with again and again.
    pub(super) fn with(&self, field: &[u8]) -> Self {
        let mut mac = self.clone();
        mac.add(field);
        mac.compress();
        mac
    }

    /// Adds a field: its length, then its bytes.
    #[inline(always)]
    pub(super) fn add(&mut self, field: &[u8]) {
        let length = number(field.len()).to_be_bytes();
        match self.room(LENGTH + field.len()) {
            Some(room) => {
                let (first, rest) = room.split_at_mut(LENGTH);
                first.copy_from_slice(&length);
                rest.copy_from_slice(field);
            }
            None => {
                self.push(&length);
                self.push(field);
            }
        }
    }

    /// Adds a field of 32 bytes and one that is a number, as what is digested
    /// of a record begins.
    #[inline(always)]
    pub(super) fn add_place(&mut self, id: &[u8; 32], place: u64) {
        let place = place.to_be_bytes();
        match self.room(LENGTH + id.len() + LENGTH + place.len()) {
            Some(room) => {
                room[..8].copy_from_slice(&number(id.len()).to_be_bytes());
                room[8..40].copy_from_slice(id);
                room[40..48].copy_from_slice(&number(place.len()).to_be_bytes());
                room[48..].copy_from_slice(&place);
            }
            None => {
                self.add(id);
                self.add(&place);
            }
        }
    }

    /// The next bytes, if they need not be compressed first.
    #[inline(always)]
    fn room(&mut self, length: usize) -> Option<&mut [u8]> {
        let room = self.gathered[..GATHERED - 1].get_mut(self.len..self.len + length)?;
        self.len += length;
        Some(room)
    }

    /// Fills a block, and compresses all that follows where it lies.
    #[cold]
    fn push(&mut self, bytes: &[u8]) {
        let start = self.len;
        let missing = start.next_multiple_of(BLOCK) - start;
        let (first, others) = bytes.split_at(missing.min(bytes.len()));
        self.len += first.len();
        self.gathered[start..self.len].copy_from_slice(first);
        if first.len() < missing {
            return;
        }
        self.compress();
        let (blocks, rest) = others.as_chunks::<BLOCK>();
        compress256(&mut self.inner, blocks);
        self.compressed += number(others.len() - rest.len());
        self.len = rest.len();
        self.gathered[..self.len].copy_from_slice(rest);
    }

    /// Compresses the whole blocks that are gathered, and keeps the rest.
    fn compress(&mut self) {
        let (blocks, rest) = self.gathered[..self.len].as_chunks::<BLOCK>();
        compress256(&mut self.inner, blocks);
        let mut gathered = [0; GATHERED + BLOCK];
        gathered[..rest.len()].copy_from_slice(rest);
        self.compressed += number(self.len - rest.len());
        self.len = rest.len();
        self.gathered = gathered;
    }

    /// The digest, after which this is of no use.
    #[inline(always)]
    pub(super) fn finish(&mut self) -> [u8; 32] {
        let end = (self.len + 1 + LENGTH).next_multiple_of(BLOCK);
        let bits = 8 * (self.compressed + number(self.len));
        self.gathered[self.len] = END;
        self.gathered[end - LENGTH..end].copy_from_slice(&bits.to_be_bytes());
        let (blocks, _) = self.gathered[..end].as_chunks::<BLOCK>();
        compress256(&mut self.inner, blocks);

        let mut last = [0; BLOCK];
        last[..32].copy_from_slice(&bytes(self.inner));
        last[32] = END;
        let bits = 8 * number(BLOCK + 32);
        last[BLOCK - LENGTH..].copy_from_slice(&bits.to_be_bytes());
        compress256(&mut self.outer, &[last]);
        bytes(self.outer)
    }
}

fn bytes(state: State) -> [u8; 32] {
    let mut bytes = [0; 32];
    let words = state.map(u32::to_be);
    for (four, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *four = word.to_ne_bytes();
    }
    bytes
}

/// A length as digests have it.
pub(super) fn number(value: usize) -> u64 {
    // No platform has more than 64 bits.
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// A key as HMAC pads it.
fn block(key: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        let short: [u8; 32] = Sha256::digest(key).into();
        block[..short.len()].copy_from_slice(&short);
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    block
}

#[cfg(test)]
mod tests {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use proptest::prelude::*;

    use super::*;

    fn by_the_crate(key: &[u8], fields: &[Vec<u8>]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        for field in fields {
            mac.update(&number(field.len()).to_be_bytes());
            mac.update(field);
        }
        mac.finalize().into_bytes().into()
    }

    fn here(key: &[u8], fields: &[Vec<u8>], begun_with: usize) -> [u8; 32] {
        let (first, others) = fields.split_at(begun_with.min(fields.len()));
        let mac = first
            .iter()
            .fold(Mac::new(key), |mac, field| mac.with(field));
        let mut digest = mac;
        for field in others {
            digest.add(field);
        }
        digest.finish()
    }

    fn field(length: usize, first: u8) -> Vec<u8> {
        let byte = |at: usize| first.wrapping_add(u8::try_from(at % 251).unwrap());
        (0..length).map(byte).collect()
    }

    #[test]
    fn every_length_is_padded_as_hmac_says() {
        for length in 0..5 * BLOCK {
            let fields = [field(length, 1)];
            for begun_with in 0..2 {
                let digest = here(b"a key", &fields, begun_with);
                assert_eq!(digest, by_the_crate(b"a key", &fields), "{length}");
            }
        }
    }

    #[test]
    fn a_key_longer_than_a_block_is_hashed_first() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 131] {
            let (key, fields) = (field(length, 7), [field(9, 1)]);
            assert_eq!(here(&key, &fields, 0), by_the_crate(&key, &fields));
        }
    }

    proptest! {
        #[test]
        fn any_fields_are_digested_as_hmac_says(
            key in prop::collection::vec(any::<u8>(), 0..100),
            lengths in prop::collection::vec(prop_oneof![0..20_usize, 0..600_usize], 0..8),
            begun_with in 0..4_usize,
            first in any::<u8>(),
        ) {
            let fields: Vec<_> = lengths.into_iter().map(|length| field(length, first)).collect();
            prop_assert_eq!(here(&key, &fields, begun_with), by_the_crate(&key, &fields));
        }
    }
}
