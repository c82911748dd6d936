//! What a `SQLite` error means, by its code.

use std::fmt::Display;

use crate::error::{StoreError, StoreErrorKind};

const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NOMEM: i32 = 7;
const READONLY: i32 = 8;
const IOERR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANTOPEN: i32 = 14;
const NOTADB: i32 = 26;

/// An error of a driver: of ours, or of the caller's own connection.
pub(super) trait Failure: Display {
    /// Returns the whole result code, such as 517 for a snapshot that is too
    /// old; none if it did not come from `SQLite`.
    fn code(&self) -> Option<i32>;

    /// Returns the primary result code (<https://sqlite.org/rescode.html>).
    fn primary(&self) -> Option<i32> {
        Some(self.code()? & 0xff)
    }
}

impl Failure for rusqlite::Error {
    fn code(&self) -> Option<i32> {
        // Behind every variant that has one, also where somebody else's
        // features of the driver add variants.
        let source = std::error::Error::source(self)?;
        let error = source.downcast_ref::<rusqlite::ffi::Error>()?;
        Some(error.extended_code)
    }
}

/// Whether a statement names what is not there.
pub(super) fn is_of_statement(error: &impl Failure) -> bool {
    error.primary() == Some(ERROR)
}

/// Whether another connection holds the write lock.
pub(super) fn is_busy(error: &impl Failure) -> bool {
    matches!(error.primary(), Some(BUSY | LOCKED))
}

/// Classifies an error of a statement that was rolled back.
pub(super) fn store_error(error: &impl Failure) -> StoreError {
    // The driver's text may quote values: it goes to the log, at debug level.
    tracing::debug!(target: "idem::store", error = %error, "SQLite error");
    let Some(code) = error.primary() else {
        return StoreError::new(
            StoreErrorKind::Transient,
            "the connection to the SQLite file failed",
        );
    };
    let (kind, what) = match code {
        BUSY | LOCKED => (StoreErrorKind::Transient, "the SQLite file is locked"),
        FULL => (
            StoreErrorKind::Transient,
            "the disk of the SQLite file is full",
        ),
        IOERR => (
            StoreErrorKind::Transient,
            "reading or writing the SQLite file failed",
        ),
        NOMEM => (StoreErrorKind::Transient, "SQLite ran out of memory"),
        READONLY => (
            StoreErrorKind::Misconfigured,
            "the SQLite file cannot be written",
        ),
        CANTOPEN => (
            StoreErrorKind::Misconfigured,
            "the SQLite file cannot be opened; does its folder exist?",
        ),
        CORRUPT => (StoreErrorKind::Permanent, "the SQLite file is damaged"),
        NOTADB => (
            StoreErrorKind::Misconfigured,
            "the file is no SQLite database",
        ),
        _ => (StoreErrorKind::Permanent, "SQLite refused a statement"),
    };
    StoreError::new(kind, what).with_code(code.to_string())
}
