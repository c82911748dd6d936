//! The entries of an object, and the order of UTF-16 code units they have.

use std::cmp::Ordering;
use std::ops::Range;

/// The high bits of eight bytes.
const NOT_ASCII: u64 = u64::MAX / 0xff * 0x80;

/// A key that is written, before escaping.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    /// Of a struct.
    Field(&'static str),
    /// Of a map: where it lies in the encoder's `keys`.
    Key(Range<usize>),
}

impl Name {
    #[inline]
    pub(crate) fn bytes<'a>(&'a self, keys: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Field(name) => name.as_bytes(),
            Self::Key(range) => &keys[range.clone()],
        }
    }
}

/// A key and its value, and where both lie in the output.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The first bytes of the name as a number, which mostly decides.
    rank: u64,
    pub(crate) name: Name,
    pub(crate) span: Range<usize>,
}

impl Entry {
    #[inline]
    pub(crate) fn new(name: Name, span: Range<usize>, keys: &[u8]) -> Self {
        let bytes = name.bytes(keys);
        let mut rank = match bytes.first_chunk() {
            Some(first) => u64::from_be_bytes(*first),
            // Not through memory: reading back what was just written in bytes stalls.
            None => {
                let mut shift = 64;
                bytes.iter().fold(0, |rank, byte| {
                    shift -= 8;
                    rank | u64::from(*byte) << shift
                })
            }
        };
        if rank & NOT_ASCII != 0 {
            rank = u64::from_be_bytes(rank.to_be_bytes().map(in_utf_16_order));
        }
        Self { rank, name, span }
    }

    #[inline]
    pub(crate) fn compare(&self, other: &Self, keys: &[u8]) -> Ordering {
        match self.rank.cmp(&other.rank) {
            Ordering::Equal => compare(self.name.bytes(keys), other.name.bytes(keys)),
            decided => decided,
        }
    }
}

/// Compares as UTF-16 code units, without leaving UTF-8.
///
/// UTF-8 orders by code point. UTF-16 differs in one thing: what lies beyond
/// U+FFFF begins with a surrogate, and so stands before U+E000 to U+FFFF, whose
/// UTF-8 begins with 0xEE or 0xEF: these are moved to the end.
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        if a != b {
            return in_utf_16_order(*a).cmp(&in_utf_16_order(*b));
        }
    }
    a.len().cmp(&b.len())
}

fn in_utf_16_order(byte: u8) -> u8 {
    match byte {
        0xee | 0xef => byte | 0x10,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_as_utf_16() {
        let keys = [
            "",
            "\0",
            "a",
            "a\0",
            "ab",
            "b",
            "\u{7f}",
            "\u{80}",
            "é",
            "\u{d7ff}",
            "\u{e000}",
            "\u{ffff}",
            "\u{10000}",
            "😀",
            "😀a",
            "\u{10ffff}",
            "a\u{ffff}",
            "a😀",
            "seven--",
            "seven--\0",
            "seven--\u{ffff}",
            "seven--😀",
            "more than eight 1",
            "more than eight 2",
        ];
        let entry = |key| Entry::new(Name::Field(key), 0..0, b"");
        for a in keys {
            for b in keys {
                let expected = a.encode_utf16().cmp(b.encode_utf16());
                assert_eq!(compare(a.as_bytes(), b.as_bytes()), expected, "{a:?} {b:?}");
                assert_eq!(entry(a).compare(&entry(b), b""), expected, "{a:?} {b:?}");
            }
        }
    }
}
