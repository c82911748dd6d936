//! What may stand behind `tx`.

use sqlx::Transaction;
use sqlx::pool::PoolConnection;

use super::Session;

/// A connection or transaction of sqlx that may stand behind `tx`:
/// `SqliteConnection`, `PgConnection`, `MySqlConnection`, and
/// `Transaction<'_, DB>` and `PoolConnection<DB>` of their databases, each under
/// the feature of its database. Sealed.
///
/// It must be in a transaction when the call is made.
///
/// # Examples
/// A function that works on each of them:
/// ```
/// use idem::transaction::TxConnection;
///
/// fn is_begun(conn: &mut impl TxConnection) -> bool {
///     conn.session().is_in_transaction()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand behind `tx`",
    label = "must be a connection or a transaction of sqlx",
    note = "take `conn: &mut sqlx::Transaction<'_, DB>` or a `&mut` connection of SQLite, Postgres or MySQL",
    note = "each database needs its feature of `idem-runtime`: `sqlite`, `postgres` or `mysql`"
)]
pub trait TxConnection: sealed::Sealed + Send {
    /// Returns the connection itself.
    fn session(&mut self) -> Session<'_>;
}

mod sealed {
    use super::Session;

    pub trait Sealed {}

    /// A database whose stores keep records in a transaction of the caller's.
    pub trait Kind: sqlx::Database {
        fn session(conn: &mut Self::Connection) -> Session<'_>;
    }
}

impl<DB: sealed::Kind> sealed::Sealed for Transaction<'_, DB> {}
impl<DB: sealed::Kind> TxConnection for Transaction<'_, DB> {
    fn session(&mut self) -> Session<'_> {
        DB::session(self)
    }
}

impl<DB: sealed::Kind> sealed::Sealed for PoolConnection<DB> {}
impl<DB: sealed::Kind> TxConnection for PoolConnection<DB> {
    fn session(&mut self) -> Session<'_> {
        DB::session(self)
    }
}

macro_rules! kind {
    ($feature:literal, $database:ty, $conn:ty, $variant:ident) => {
        #[cfg(feature = $feature)]
        impl sealed::Kind for $database {
            fn session(conn: &mut $conn) -> Session<'_> {
                Session::$variant(conn)
            }
        }

        #[cfg(feature = $feature)]
        impl sealed::Sealed for $conn {}

        #[cfg(feature = $feature)]
        impl TxConnection for $conn {
            fn session(&mut self) -> Session<'_> {
                Session::$variant(self)
            }
        }
    };
}

kind!("sqlite", sqlx::Sqlite, sqlx::SqliteConnection, Sqlite);
kind!("postgres", sqlx::Postgres, sqlx::PgConnection, Postgres);
kind!("mysql", sqlx::MySql, sqlx::MySqlConnection, MySql);
