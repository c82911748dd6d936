//! The entries of an object, and the order of UTF-16 code units they have.

use std::cmp::Ordering;

use super::text;

/// The high bits of eight bytes.
const NOT_ASCII: u64 = u64::MAX / 0xff * 0x80;
/// How many entries need no memory of their own: more than most objects have.
pub(crate) const FEW: usize = 8;

/// A key and its value, and where both lie in the output, with the comma in
/// front.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Entry {
    /// The first bytes of the key as a number, which mostly decides.
    pub(crate) rank: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The first bytes of a key, before escaping, as a number in its order.
#[inline(always)]
pub(crate) fn rank(key: &[u8]) -> u64 {
    let rank = match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => text::word(key).swap_bytes(),
    };
    if rank & NOT_ASCII == 0 {
        rank
    } else {
        u64::from_be_bytes(rank.to_be_bytes().map(in_utf_16_order))
    }
}

/// Compares by key two entries, of each its rank and where it begins in `out`.
#[inline(always)]
pub(crate) fn compare(a: (u64, usize), b: (u64, usize), out: &[u8]) -> Ordering {
    match a.0.cmp(&b.0) {
        Ordering::Equal => compare_keys(&out[a.1 + 1..], &out[b.1 + 1..]),
        decided => decided,
    }
}

/// The entries of all open objects, of which each owns the tail.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    few: [Entry; FEW],
    /// How many of the few there are.
    len: usize,
    /// All of them, once they have been too many; empty until then.
    many: Vec<Entry>,
}

impl Entries {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.max(self.many.len())
    }

    // By its parts: an entry that is put together in memory, and copied from
    // there at once, is waited for.
    #[inline]
    pub(crate) fn push(&mut self, rank: u64, start: usize, end: usize) {
        match self.few.get_mut(self.len) {
            Some(place) if self.many.is_empty() => {
                place.rank = rank;
                place.start = start;
                place.end = end;
                self.len += 1;
            }
            _ => self.push_many(rank, start, end),
        }
    }

    #[cold]
    fn push_many(&mut self, rank: u64, start: usize, end: usize) {
        if self.many.is_empty() {
            self.many.reserve(8 * FEW);
            self.many.extend(self.few);
            self.len = 0;
        }
        self.many.push(Entry { rank, start, end });
    }

    #[inline]
    pub(crate) fn from(&mut self, start: usize) -> &mut [Entry] {
        if self.many.is_empty() {
            &mut self.few[start..self.len]
        } else {
            &mut self.many[start..]
        }
    }

    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.many.truncate(len);
    }
}

/// Compares as UTF-16 code units, without leaving UTF-8.
///
/// UTF-8 orders by code point. UTF-16 differs in one thing: what lies beyond
/// U+FFFF begins with a surrogate, and so stands before U+E000 to U+FFFF, whose
/// UTF-8 begins with 0xEE or 0xEF: these are moved to the end.
///
/// `a` and `b` begin with a key as it is written, with quotes and escapes.
#[inline(never)]
fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
    let same = text::same_plain(a, b);
    for (a, b) in a[same..].iter().zip(&b[same..]) {
        if *a == b'\\' || *b == b'\\' {
            break;
        }
        match (*a, *b) {
            (b'"', b'"') => return Ordering::Equal,
            (b'"', _) => return Ordering::Less,
            (_, b'"') => return Ordering::Greater,
            (a, b) if a != b => return in_utf_16_order(a).cmp(&in_utf_16_order(b)),
            _ => {}
        }
    }
    // Escapes are not in the order of what they stand for.
    let key = |written| text::Unescaped::new(written).map(in_utf_16_order);
    key(a).cmp(key(b))
}

#[inline]
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
            "seven--\"",
            "seven--\"a",
            "seven--\\",
            "seven--\\a",
            "seven--\n",
            "seven--#",
            "\u{1f}",
            "\u{8}\u{c}\r\t",
            "more than eight 1",
            "more than eight 2",
            "exactly 16 bytes",
            "exactly 16 bytes and more",
            "exactly 16 bytes\"",
            "exactly 16 bytes\\",
            "exactly 16 bytes\u{1}",
            "exactly 16 bytes!",
            "exactly \" bytes and more",
            "exactly # bytes and more",
            "exactly \u{ffff} bytes",
            "exactly 😀 bytes",
        ];
        let mut out = Vec::new();
        let entries = keys.map(|key| {
            let start = out.len();
            out.push(b',');
            text::write(&mut out, key.as_bytes());
            out.push(b':');
            (key, rank(key.as_bytes()), start)
        });
        for (a, rank_a, start_a) in entries {
            for (b, rank_b, start_b) in entries {
                let expected = a.encode_utf16().cmp(b.encode_utf16());
                let names = compare((0, start_a), (0, start_b), &out);
                assert_eq!(names, expected, "{a:?} {b:?}");
                let ranks = compare((rank_a, start_a), (rank_b, start_b), &out);
                assert_eq!(ranks, expected, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn entries_are_kept_in_order_however_many_there_are() {
        let mut entries = Entries::default();
        for round in 0..2 {
            for count in 0..3 * FEW {
                assert_eq!(entries.len(), count, "{round}");
                entries.push(0, 0, count);
            }
            for count in (0..3 * FEW).rev() {
                let ends: Vec<_> = entries.from(count / 2).iter().map(|e| e.end).collect();
                assert_eq!(ends, (count / 2..=count).collect::<Vec<_>>(), "{round}");
                entries.truncate(count);
            }
        }
    }
}
