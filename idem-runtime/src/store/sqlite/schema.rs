//! Creating and upgrading the schema, harmlessly from many processes at once.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};

use super::error::{is_busy, is_of_statement, store_error};
use super::statements;
use crate::error::{StoreError, StoreErrorKind};

/// Brings the schema up to date under the write lock.
pub(super) async fn migrate(conn: &mut SqliteConnection, now_us: i64) -> Result<(), StoreError> {
    begin(conn).await?;
    let migrated = apply(conn, now_us).await;
    let ending = if migrated.is_ok() {
        statements::COMMIT
    } else {
        statements::ROLLBACK
    };
    let ended = conn.execute(ending).await;
    migrated?;
    ended.map_err(|error| store_error(&error))?;
    Ok(())
}

/// Fails unless the file is there and its schema is that of this version.
pub(super) async fn require(path: &Path) -> Result<(), StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(Duration::from_secs(2))
        .disable_statement_logging();
    let mut conn = open(&options).await?;
    let version: Result<Option<i64>, _> = sqlx::query_scalar(statements::SCHEMA_VERSION)
        .fetch_one(&mut conn)
        .await;
    conn.close().await.ok();
    let version = match version {
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

async fn apply(conn: &mut SqliteConnection, now_us: i64) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| store_error(&error);
    conn.execute(statements::CREATE_SCHEMA_TABLE)
        .await
        .map_err(failed)?;
    let version: Option<i64> = sqlx::query_scalar(statements::SCHEMA_VERSION)
        .fetch_one(&mut *conn)
        .await
        .map_err(failed)?;
    let version = version.unwrap_or(0);
    let newest = newest();
    if version > newest {
        return Err(too_new(version, newest));
    }
    for (number, sql) in statements::MIGRATIONS {
        if *number <= version {
            continue;
        }
        sqlx::raw_sql(*sql)
            .execute(&mut *conn)
            .await
            .map_err(failed)?;
        sqlx::query(statements::SCHEMA_APPLIED)
            .bind(number)
            .bind(now_us)
            .execute(&mut *conn)
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// How often a locked file is tried again. Each try already waits for the busy
/// timeout inside `SQLite`, except where it sees that waiting cannot help.
const TRIES: u32 = 8;

/// Opens a connection and takes part in WAL mode, which needs the file to
/// itself for a moment: other processes may be opening it too.
pub(super) async fn open(options: &SqliteConnectOptions) -> Result<SqliteConnection, StoreError> {
    let mut number = 1;
    loop {
        match SqliteConnection::connect_with(options).await {
            Ok(conn) => return Ok(conn),
            Err(error) => again(&error, &mut number).await?,
        }
    }
}

/// Takes the write lock, waiting while others hold it.
pub(super) async fn begin(conn: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut number = 1;
    loop {
        match conn.execute(statements::BEGIN).await {
            Ok(_) => return Ok(()),
            Err(error) => again(&error, &mut number).await?,
        }
    }
}

/// Pauses if the file is locked and there are tries left.
async fn again(error: &sqlx::Error, number: &mut u32) -> Result<(), StoreError> {
    if !is_busy(error) || *number == TRIES {
        return Err(store_error(error));
    }
    tokio::time::sleep(crate::backoff::jittered(*number)).await;
    *number += 1;
    Ok(())
}
