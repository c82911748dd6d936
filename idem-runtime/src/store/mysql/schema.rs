//! Creating and upgrading the schema, harmlessly from many processes at once.

use sqlx::mysql::{MySqlConnection, MySqlPool};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use super::error::store_error;
use super::statements::Statements;
use crate::error::{StoreError, StoreErrorKind};

/// Brings the schema up to date on a connection of its own, whose lock ends
/// with it if the future is dropped.
pub(super) async fn migrate(pool: &MySqlPool, statements: &Statements) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| store_error(&error);
    let mut conn = MySqlConnection::connect_with(&pool.connect_options())
        .await
        .map_err(failed)?;
    let migrated = apply(&mut conn, statements).await;
    conn.close().await.ok();
    migrated
}

/// Each table is created by a statement that commits by itself, so each says
/// "if not exists", and the lock makes processes take turns.
async fn apply(conn: &mut MySqlConnection, statements: &Statements) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| store_error(&error);
    let locked: Option<i64> = sqlx::query_scalar("select get_lock(concat('idem ', md5(?)), 30)")
        .bind(statements.place.as_str())
        .fetch_one(&mut *conn)
        .await
        .map_err(failed)?;
    if locked != Some(1) {
        return Err(StoreError::new(
            StoreErrorKind::Transient,
            "another process has been upgrading the schema for 30 s",
        ));
    }
    conn.execute(AssertSqlSafe(statements.create_schema_table.as_str()))
        .await
        .map_err(failed)?;
    let version: i64 = sqlx::query_scalar(AssertSqlSafe(statements.schema_version.as_str()))
        .fetch_one(&mut *conn)
        .await
        .map_err(failed)?;
    let newest = statements
        .migrations
        .last()
        .map_or(0, |(number, _)| *number);
    if version > newest {
        return Err(StoreError::new(
            StoreErrorKind::Misconfigured,
            format!(
                "the schema has version {version}, newer than the {newest} this version knows; upgrade idem"
            ),
        ));
    }
    for (number, sql) in &statements.migrations {
        if *number <= version {
            continue;
        }
        sqlx::raw_sql(AssertSqlSafe(sql.as_str()))
            .execute(&mut *conn)
            .await
            .map_err(failed)?;
        sqlx::query(AssertSqlSafe(statements.schema_applied.as_str()))
            .bind(number)
            .execute(&mut *conn)
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// The migrations as one script.
pub(super) fn sql(statements: &Statements) -> String {
    let mut sql = format!("{};\n\n", statements.create_schema_table);
    for (number, migration) in &statements.migrations {
        sql.push_str(migration);
        let applied = statements
            .schema_applied
            .replacen('?', &number.to_string(), 1);
        sql.push_str(&format!("\n{applied};\n"));
    }
    sql
}
