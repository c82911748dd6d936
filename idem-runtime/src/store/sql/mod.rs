//! What the rows of the stores on servers and in files have in common.

#[cfg(all(feature = "_sql", feature = "tx"))]
mod ended;
#[cfg(feature = "_sql")]
mod pages;

#[cfg(all(feature = "_sql", feature = "tx"))]
pub(in crate::store) use self::ended::Ended;
#[cfg(feature = "_sql")]
pub(in crate::store) use self::pages::{behind, counts, page, to_read};
#[cfg(any(feature = "postgres", feature = "mysql"))]
use crate::clock::{Clock as _, SystemClock};
use crate::error::{StoreError, StoreErrorKind};
use crate::record::{Element, VersionBytes};

/// A row that this version cannot read: nothing is decided on it.
pub(super) fn damaged(what: &'static str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Permanent,
        format!("a record's {what} cannot be read"),
    )
}

/// Reads bytes of a known length.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis"))]
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
