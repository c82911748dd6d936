//! What may stand behind `tx`.

#[cfg(feature = "_sql")]
use sqlx::{Transaction, pool::PoolConnection};

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
    /// The connection itself, without the transaction around it.
    type Connection: TxConnection;

    /// Returns the connection itself: what a closure is given that runs in the
    /// transaction. A future that holds a closure over `&mut Transaction<'_, _>`
    /// could not be spawned.
    fn connection(&mut self) -> &mut Self::Connection;

    /// Returns the connection, of whichever database.
    fn session(&mut self) -> Session<'_>;
}

mod sealed {
    #[cfg(feature = "_sql")]
    use super::Session;

    pub trait Sealed {}

    #[cfg(feature = "_sql")]
    /// A database whose stores keep records in a transaction of the caller's.
    pub trait Kind: sqlx::Database<Connection: super::TxConnection> {
        fn session(conn: &mut Self::Connection) -> Session<'_>;
    }
}

#[cfg(feature = "_sql")]
impl<DB: sealed::Kind> sealed::Sealed for Transaction<'_, DB> {}
#[cfg(feature = "_sql")]
impl<DB: sealed::Kind> TxConnection for Transaction<'_, DB> {
    type Connection = DB::Connection;

    fn connection(&mut self) -> &mut DB::Connection {
        self
    }

    fn session(&mut self) -> Session<'_> {
        DB::session(self)
    }
}

#[cfg(feature = "_sql")]
impl<DB: sealed::Kind> sealed::Sealed for PoolConnection<DB> {}
#[cfg(feature = "_sql")]
impl<DB: sealed::Kind> TxConnection for PoolConnection<DB> {
    type Connection = DB::Connection;

    fn connection(&mut self) -> &mut DB::Connection {
        self
    }

    fn session(&mut self) -> Session<'_> {
        DB::session(self)
    }
}

#[cfg(feature = "_sql")]
macro_rules! kind {
    ($database:ty, $conn:ty, $variant:ident) => {
        impl sealed::Kind for $database {
            fn session(conn: &mut $conn) -> Session<'_> {
                Session::$variant(conn)
            }
        }

        impl sealed::Sealed for $conn {}

        impl TxConnection for $conn {
            type Connection = Self;

            fn connection(&mut self) -> &mut Self {
                self
            }

            fn session(&mut self) -> Session<'_> {
                Session::$variant(self)
            }
        }
    };
}

#[cfg(feature = "sqlite")]
kind!(sqlx::Sqlite, sqlx::SqliteConnection, Sqlite);
#[cfg(feature = "postgres")]
kind!(sqlx::Postgres, sqlx::PgConnection, Postgres);
#[cfg(feature = "mysql")]
kind!(sqlx::MySql, sqlx::MySqlConnection, MySql);
