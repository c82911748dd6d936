//! Creating and upgrading the schema, harmlessly from many processes at once.

use std::path::Path;

use rusqlite::Connection;

use super::connection::{Database, begin, execute};
use super::error::{is_of_statement, store_error};
use super::statements;
use crate::error::{StoreError, StoreErrorKind};

/// Brings the schema up to date under the write lock.
pub(super) fn migrate(conn: &Connection, now_us: i64) -> Result<(), StoreError> {
    begin(conn)?;
    let migrated = apply(conn, now_us);
    let ending = if migrated.is_ok() {
        statements::COMMIT
    } else {
        statements::ROLLBACK
    };
    let ended = execute(conn, ending);
    migrated?;
    ended.map_err(|error| store_error(&error))
}

/// Fails unless the file is there and its schema is that of this version.
pub(super) fn require(path: &Path) -> Result<(), StoreError> {
    let database = Database {
        path: path.to_owned(),
        create: false,
    };
    let version = match version(&database.connect_plainly()?) {
        Err(error) if is_of_statement(&error) => None,
        version => version.map_err(|error| store_error(&error))?,
    };
    let newest = newest();
    match version.unwrap_or(0) {
        version if version == newest => Ok(()),
        version if version > newest => Err(too_new(version, newest)),
        _ => Err(StoreError::new(
            StoreErrorKind::Misconfigured,
            "the SQLite file has no schema of idem, or an old one; open it to be written, or run `idem migrate`",
        )),
    }
}

/// The migrations as one script.
pub(super) fn sql() -> String {
    let mut sql = format!("{};\n", statements::CREATE_SCHEMA_TABLE.trim_end());
    for (number, migration) in statements::MIGRATIONS {
        let applied = statements::SCHEMA_APPLIED
            .replace("?1", &number.to_string())
            .replace("?2", "unixepoch() * 1000000");
        sql.push_str(&format!("\n{migration}\n{applied};\n"));
    }
    sql
}

fn newest() -> i64 {
    statements::MIGRATIONS
        .last()
        .map_or(0, |(number, _)| *number)
}

fn too_new(version: i64, newest: i64) -> StoreError {
    StoreError::new(
        StoreErrorKind::Misconfigured,
        format!(
            "the schema has version {version}, newer than the {newest} this version knows; upgrade idem"
        ),
    )
}

fn version(conn: &Connection) -> rusqlite::Result<Option<i64>> {
    conn.query_row(statements::SCHEMA_VERSION, (), |row| row.get(0))
}

fn apply(conn: &Connection, now_us: i64) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| store_error(&error);
    conn.execute(statements::CREATE_SCHEMA_TABLE, ())
        .map_err(failed)?;
    let version = version(conn).map_err(failed)?.unwrap_or(0);
    let newest = newest();
    if version > newest {
        return Err(too_new(version, newest));
    }
    for (number, sql) in statements::MIGRATIONS {
        if *number <= version {
            continue;
        }
        conn.execute_batch(sql).map_err(failed)?;
        conn.execute(statements::SCHEMA_APPLIED, (number, now_us))
            .map_err(failed)?;
    }
    Ok(())
}
