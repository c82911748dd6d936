//! Creating and upgrading the schema, harmlessly from many processes at once.

use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use super::error::store_error;
use super::statements::Statements;
use crate::error::{StoreError, StoreErrorKind};

/// Brings the schema up to date on a connection of its own, which is closed
/// with whatever transaction it has if the future is dropped.
pub(super) async fn migrate(pool: &PgPool, statements: &Statements) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| store_error(&error);
    let mut conn = PgConnection::connect_with(&pool.connect_options())
        .await
        .map_err(failed)?;
    let migrated = apply(&mut conn, statements).await;
    // Closing rolls back what was not committed, and frees the lock.
    conn.close().await.ok();
    migrated
}

async fn apply(conn: &mut PgConnection, statements: &Statements) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| store_error(&error);
    conn.execute("begin").await.map_err(failed)?;
    // One at a time for each set of tables; ends with the transaction.
    sqlx::query("select pg_advisory_xact_lock(hashtextextended($1, 0))")
        .bind(format!("idem migrate {}", statements.place))
        .execute(&mut *conn)
        .await
        .map_err(failed)?;
    let create = statements.create_namespace.iter();
    for sql in create.chain([&statements.create_schema_table]) {
        conn.execute(AssertSqlSafe(sql.as_str()))
            .await
            .map_err(failed)?;
    }
    let version: i32 = sqlx::query_scalar(AssertSqlSafe(statements.schema_version.as_str()))
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
    conn.execute("commit").await.map_err(failed)?;
    Ok(())
}

/// The migrations as one script.
pub(super) fn sql(statements: &Statements) -> String {
    let mut sql = String::new();
    let create = statements.create_namespace.iter();
    for statement in create.chain([&statements.create_schema_table]) {
        sql.push_str(statement);
        sql.push_str(";\n\n");
    }
    for (number, migration) in &statements.migrations {
        sql.push_str(migration);
        let applied = statements.schema_applied.replace("$1", &number.to_string());
        sql.push_str(&format!("\n{applied};\n"));
    }
    sql
}
