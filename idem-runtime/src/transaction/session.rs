//! A caller's connection, of whichever database.

#[cfg(all(feature = "_sql", feature = "tx"))]
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use super::statements::Savepoint;
use crate::error::StoreError;

/// A caller's connection, in its transaction.
///
/// Which variants there are depends on the features.
#[non_exhaustive]
pub enum Session<'c> {
    /// Of no database: no store takes it.
    #[doc(hidden)]
    None(std::marker::PhantomData<&'c mut ()>),
    /// Of a `SQLite` file.
    #[cfg(all(feature = "sqlite", feature = "tx"))]
    Sqlite(&'c mut sqlx::SqliteConnection),
    /// To a Postgres server.
    #[cfg(feature = "postgres")]
    Postgres(&'c mut sqlx::PgConnection),
    /// To a `MariaDB` or `MySQL` server.
    #[cfg(feature = "mysql")]
    MySql(&'c mut sqlx::MySqlConnection),
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A connection knows its password.
        f.write_str("Session")
    }
}

impl Session<'_> {
    /// Returns whether a transaction has begun on this connection, as far as
    /// the driver knows: one that was begun with a statement of one's own does
    /// not count.
    #[must_use]
    pub fn is_in_transaction(&self) -> bool {
        match self {
            Self::None(_) => false,
            #[cfg(all(feature = "sqlite", feature = "tx"))]
            Self::Sqlite(conn) => conn.is_in_transaction(),
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => conn.is_in_transaction(),
            #[cfg(feature = "mysql")]
            Self::MySql(conn) => conn.is_in_transaction(),
        }
    }

    /// Borrows the connection for a while.
    #[must_use]
    pub fn reborrow(&mut self) -> Session<'_> {
        match self {
            Self::None(_) => Session::None(std::marker::PhantomData),
            #[cfg(all(feature = "sqlite", feature = "tx"))]
            Self::Sqlite(conn) => Session::Sqlite(conn),
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => Session::Postgres(conn),
            #[cfg(feature = "mysql")]
            Self::MySql(conn) => Session::MySql(conn),
        }
    }

    /// Sets a savepoint.
    pub(crate) async fn set_savepoint(&mut self) -> Result<Savepoint, StoreError> {
        let savepoint = Savepoint::new();
        self.execute(savepoint.set()).await?;
        Ok(savepoint)
    }

    /// Keeps what came after a savepoint.
    pub(crate) async fn keep(&mut self, savepoint: &Savepoint) -> Result<(), StoreError> {
        self.execute(savepoint.keep()).await
    }

    /// Undoes what came after a savepoint, and the savepoint itself: many of
    /// them must not pile up in one transaction.
    pub(crate) async fn undo(&mut self, savepoint: &Savepoint) -> Result<(), StoreError> {
        self.execute(savepoint.undo()).await?;
        self.execute(savepoint.keep()).await
    }

    #[cfg_attr(
        not(all(feature = "_sql", feature = "tx")),
        expect(
            unused_variables,
            clippy::unused_async,
            reason = "there is no database"
        )
    )]
    async fn execute(&mut self, sql: String) -> Result<(), StoreError> {
        // Only a number was filled in.
        #[cfg(all(feature = "_sql", feature = "tx"))]
        let sql = AssertSqlSafe(sql);
        match self {
            Self::None(_) => {}
            #[cfg(all(feature = "sqlite", feature = "tx"))]
            Self::Sqlite(conn) => {
                let done = conn.execute(sql).await;
                done.map_err(|error| crate::store::sqlite::in_session(&error))?;
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => {
                let done = conn.execute(sql).await;
                done.map_err(|error| crate::store::postgres::in_session(&error))?;
            }
            #[cfg(feature = "mysql")]
            Self::MySql(conn) => {
                let done = conn.execute(sql).await;
                done.map_err(|error| crate::store::mysql::in_session(&error))?;
            }
        }
        Ok(())
    }
}
