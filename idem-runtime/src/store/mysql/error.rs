//! What a `MySQL` or `MariaDB` error means, by its number.

use sqlx::mysql::MySqlDatabaseError;

use crate::error::{StoreError, StoreErrorKind};

const DUPLICATE: u16 = 1062;
/// Deadlock, lock wait timeout, changed since it was read: the statement was
/// rolled back, and once more may do.
const AGAIN: [u16; 3] = [1213, 1205, 1020];

/// The server, or the session, only reads.
const ONLY_READS: [u16; 3] = [1290, 1792, 1836];

fn number(error: &sqlx::Error) -> Option<u16> {
    Some(
        error
            .as_database_error()?
            .try_downcast_ref::<MySqlDatabaseError>()?
            .number(),
    )
}

/// Whether the key is there already.
pub(super) fn is_duplicate(error: &sqlx::Error) -> bool {
    number(error) == Some(DUPLICATE)
}

/// Whether the session has waited for a lock as long as it is set to: the
/// statement was undone, the transaction goes on.
pub(super) fn is_wait_over(error: &sqlx::Error) -> bool {
    number(error) == Some(1205)
}

/// Whether a table, or a database, is not there.
pub(super) fn missing_table(error: &sqlx::Error) -> bool {
    matches!(number(error), Some(1146 | 1049))
}

/// The number of an error with which the server ends the whole transaction.
pub(super) fn rolled_back(error: &sqlx::Error) -> Option<u16> {
    number(error).filter(|number| [1213, 1020].contains(number))
}

/// Whether the statement was rolled back only because others were in the way.
pub(super) fn is_conflict(error: &sqlx::Error) -> bool {
    number(error).is_some_and(|number| AGAIN.contains(&number))
}

/// Whether the server, or the session, only reads: another server may have
/// taken its place.
pub(super) fn only_reads(error: &sqlx::Error) -> bool {
    number(error).is_some_and(|number| ONLY_READS.contains(&number))
}

/// Classifies an error of a single statement
/// (<https://mariadb.com/kb/en/mariadb-error-code-reference/>).
pub(super) fn store_error(error: &sqlx::Error) -> StoreError {
    // The driver's text may quote values: it goes to the log, at debug level.
    tracing::debug!(target: "idem::store", error = %error, "MySQL error");
    let Some(number) = number(error) else {
        return match error {
            sqlx::Error::PoolTimedOut => StoreError::new(
                StoreErrorKind::Transient,
                "no connection became free in time",
            ),
            sqlx::Error::Configuration(_) => StoreError::new(
                StoreErrorKind::Misconfigured,
                "the URL of the MySQL server is not valid",
            ),
            // Cut off on the way: the server may have done it.
            _ => StoreError::new(
                StoreErrorKind::Transient,
                "the connection to the MySQL server failed",
            )
            .ambiguous(),
        };
    };
    let (kind, what) = match number {
        1040 | 1203 | 1021 | 1041 | 1053 => (
            StoreErrorKind::Transient,
            "the MySQL server is not available",
        ),
        1213 | 1205 | 1020 => (
            StoreErrorKind::Transient,
            "the MySQL server is busy with the same rows",
        ),
        1044 | 1045 | 1049 | 1142 => (
            StoreErrorKind::Misconfigured,
            "the MySQL server refused the user or the database",
        ),
        1146 | 1054 => (
            StoreErrorKind::Misconfigured,
            "a table of the schema is missing; call `migrate()`",
        ),
        // Not for ever: another server may take its place, and what a body
        // returned meanwhile must not be lost.
        number if ONLY_READS.contains(&number) => {
            (StoreErrorKind::Transient, "the MySQL server is read-only")
        }
        1153 => (
            StoreErrorKind::Permanent,
            "the answer is larger than the server's `max_allowed_packet`",
        ),
        _ => (
            StoreErrorKind::Permanent,
            "the MySQL server refused a statement",
        ),
    };
    let store_error = StoreError::new(kind, what).with_code(number.to_string());
    // Shutting down: before the statement or after it.
    if number == 1053 {
        return store_error.ambiguous();
    }
    store_error
}
