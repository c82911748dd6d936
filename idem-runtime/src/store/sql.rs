//! What the rows of the stores on servers and in files have in common.

#[cfg(any(feature = "postgres", feature = "mysql"))]
use crate::clock::{Clock as _, SystemClock};
use crate::error::{StoreError, StoreErrorKind};
use crate::record::{Element, Record, VersionBytes};
use crate::store::{Counts, Page, Scan};

/// A row that this version cannot read: nothing is decided on it.
pub(super) fn damaged(what: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Permanent,
        format!("a record's {what} cannot be read"),
    )
}

/// Reads bytes of a known length.
pub(super) fn fixed<const N: usize>(
    bytes: Vec<u8>,
    what: &'static str,
) -> Result<[u8; N], StoreError> {
    bytes.try_into().map_err(|_| damaged(what))
}

/// Reads a version, if there is one.
pub(super) fn version(bytes: Option<Vec<u8>>) -> Result<Option<VersionBytes>, StoreError> {
    bytes
        .map(|bytes| VersionBytes::new(bytes).ok_or_else(|| damaged("version")))
        .transpose()
}

/// Whether a server's time differs so much from what this process had before it
/// asked, and has now, that people should know.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) fn is_apart(asked_us: i64, server_us: i64) -> bool {
    const MUCH_US: i64 = 10_000_000;
    let now_us = SystemClock.unix_us();
    server_us < asked_us.saturating_sub(MUCH_US) || server_us > now_us.saturating_add(MUCH_US)
}

/// Writes payload elements: of each the label's length in two bytes, the label,
/// eight bytes of digest.
pub(super) fn write_elements(elements: &[Element]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for element in elements {
        let label = element.label.as_bytes();
        let len = u16::try_from(label.len()).unwrap_or(u16::MAX);
        bytes.extend(len.to_be_bytes());
        bytes.extend(&label[..usize::from(len)]);
        bytes.extend(element.digest);
    }
    bytes
}

/// Reads payload elements.
pub(super) fn read_elements(mut bytes: &[u8]) -> Result<Vec<Element>, StoreError> {
    let mut elements = Vec::new();
    while !bytes.is_empty() {
        let (element, rest) = read_element(bytes).ok_or_else(|| damaged("payload elements"))?;
        elements.push(element);
        bytes = rest;
    }
    Ok(elements)
}

fn read_element(bytes: &[u8]) -> Option<(Element, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (label, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    let (digest, rest) = rest.split_first_chunk()?;
    let element = Element {
        label: String::from_utf8_lossy(label).into_owned(),
        digest: *digest,
    };
    Some((element, rest))
}

/// How many records to read for a page: one more tells whether it is the last.
pub(super) fn to_read(request: &Scan) -> i64 {
    i64::from(request.limit.max(1)) + 1
}

/// Makes a page of as many records as [`to_read`] said.
pub(super) fn page(request: &Scan, now_us: i64, mut records: Vec<Record>) -> Page {
    let limit = request.limit.max(1) as usize;
    let more = records.len() > limit;
    records.truncate(limit);
    Page {
        now_us,
        next: records.last().filter(|_| more).map(|record| record.id),
        records,
    }
}

/// The id that a page starts behind: every id is behind no bytes.
pub(super) fn behind(request: &Scan) -> Vec<u8> {
    request
        .after
        .map_or_else(Vec::new, |id| id.as_bytes().to_vec())
}

/// What is in progress, lapsed and unknown; when the oldest attempt was
/// reserved, and since when the oldest unknown outcome is in doubt.
pub(super) type Open = (i64, i64, i64, Option<i64>, Option<i64>);

/// Makes counts of what statements of that form have counted.
pub(super) fn counts(now_us: i64, open: Open, finished: Option<i64>) -> Counts {
    let (in_progress, lapsed, unknown, oldest_started_us, oldest_unknown_us) = open;
    Counts {
        now_us,
        in_progress: in_progress.unsigned_abs(),
        lapsed: lapsed.unsigned_abs(),
        unknown: unknown.unsigned_abs(),
        oldest_started_us,
        oldest_unknown_us,
        finished: finished.map(i64::unsigned_abs),
    }
}
