//! What a Postgres error means, by its SQLSTATE.

use crate::error::{StoreError, StoreErrorKind};

/// Serialization failure, deadlock: nothing was done, and once more may do.
const AGAIN: [&str; 2] = ["40001", "40P01"];

pub(super) fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

/// Whether the statement was rolled back only because others were in the way.
pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| AGAIN.contains(&code.as_str()))
}

/// Whether the server, or the session, only reads: another server may have
/// taken its place.
pub(super) fn only_reads(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == "25006")
}

/// Classifies an error of a single statement
/// (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
pub(super) fn store_error(error: &sqlx::Error) -> StoreError {
    // The driver's text may quote values: it goes to the log, at debug level.
    tracing::debug!(target: "idem::store", error = %error, "Postgres error");
    let Some(code) = code(error) else {
        return match error {
            sqlx::Error::PoolTimedOut => StoreError::new(
                StoreErrorKind::Transient,
                "no connection became free in time",
            ),
            sqlx::Error::Configuration(_) => StoreError::new(
                StoreErrorKind::Misconfigured,
                "the URL of the Postgres server is not valid",
            ),
            // Cut off on the way: the server may have done it.
            _ => StoreError::new(
                StoreErrorKind::Transient,
                "the connection to the Postgres server failed",
            )
            .ambiguous(),
        };
    };
    let (kind, what) = match &code[..std::cmp::min(2, code.len())] {
        "08" | "57" | "53" => (
            StoreErrorKind::Transient,
            "the Postgres server is not available",
        ),
        "40" | "55" => (
            StoreErrorKind::Transient,
            "the Postgres server is busy with the same rows",
        ),
        "28" | "3D" | "3F" => (
            StoreErrorKind::Misconfigured,
            "the Postgres server refused the user or the database",
        ),
        "42" => (
            StoreErrorKind::Misconfigured,
            "a table of the schema is missing, or the user may not use it; call `migrate()`",
        ),
        // Not for ever: another server may take its place, and what a body
        // returned meanwhile must not be lost.
        "25" => (
            StoreErrorKind::Transient,
            "the Postgres server is read-only",
        ),
        _ => (
            StoreErrorKind::Permanent,
            "the Postgres server refused a statement",
        ),
    };
    let store_error = StoreError::new(kind, what).with_code(code.as_str());
    // The server ended the connection: before the statement or after it.
    if code.starts_with("08") || code.starts_with("57P") {
        return store_error.ambiguous();
    }
    store_error
}
