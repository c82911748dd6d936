//! Putting the entries of an object in the order of their keys.

use std::cmp::Ordering;

use super::entry::{self, Entry, FEW};

/// Entries up to this long are copied in one step of fixed length.
const STEP: usize = 32;

/// Sorts the part of the output that begins at `body` and consists of these
/// entries: first behind itself, then over itself. Says whether no two have the
/// same key; if two have, the output is of no use.
pub(crate) fn sort(out: &mut Vec<u8>, entries: &mut [Entry], body: usize) -> bool {
    let end = out.len();
    out.reserve(end - body + 2 * STEP);
    // A step may read behind the last entry.
    out.extend_from_slice(&[0; STEP]);
    let sorted = out.len();
    let is_set = if entries.len() > FEW {
        append_many(out, entries)
    } else {
        append_few(out, entries)
    };
    out.copy_within(sorted.., body);
    out.truncate(end);
    is_set
}

fn append_many(out: &mut Vec<u8>, entries: &mut [Entry]) -> bool {
    entries.sort_unstable_by(|a, b| compare(a, b, out));
    for entry in &*entries {
        append(out, entry);
    }
    let mut pairs = entries.windows(2);
    pairs.all(|pair| compare(&pair[0], &pair[1], out).is_lt())
}

/// Without moving entries: those just written would be waited for.
fn append_few(out: &mut Vec<u8>, entries: &[Entry]) -> bool {
    let mut ranks = [0; FEW];
    let mut order = [0_u8; FEW];
    for (number, (at, entry)) in (0..).zip(entries.iter().enumerate()) {
        let mut to = at;
        while let Some(before) = to.checked_sub(1) {
            if ranks[before] < entry.rank {
                break;
            }
            if ranks[before] == entry.rank {
                match compare(&entries[usize::from(order[before])], entry, out) {
                    Ordering::Less => break,
                    Ordering::Equal => return false,
                    Ordering::Greater => {}
                }
            }
            ranks[to] = ranks[before];
            order[to] = order[before];
            to = before;
        }
        ranks[to] = entry.rank;
        order[to] = number;
    }
    for at in &order[..entries.len()] {
        append(out, &entries[usize::from(*at)]);
    }
    true
}

#[inline(always)]
fn append(out: &mut Vec<u8>, entry: &Entry) {
    let length = entry.end - entry.start;
    if length <= STEP {
        let until = out.len() + length;
        out.extend_from_within(entry.start..entry.start + STEP);
        out.truncate(until);
    } else {
        out.extend_from_within(entry.start..entry.end);
    }
}

#[inline(always)]
fn compare(a: &Entry, b: &Entry, out: &[u8]) -> Ordering {
    entry::compare((a.rank, a.start), (b.rank, b.start), out)
}
