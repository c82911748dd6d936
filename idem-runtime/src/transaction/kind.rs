//! The connections of sqlx that may stand behind `tx`.

use sqlx::{Database, Transaction, pool::PoolConnection};

use super::connection::{Sealed, TxConnection};
use super::session::Session;

/// A database whose stores keep records in a transaction of the caller's.
pub trait Kind: Database<Connection: TxConnection> {
    fn session(conn: &mut Self::Connection) -> Session<'_>;
}

macro_rules! around {
    ($around:ty) => {
        impl<DB: Kind> Sealed for $around {}

        impl<DB: Kind> TxConnection for $around {
            type Connection = DB::Connection;

            fn connection(&mut self) -> &mut DB::Connection {
                self
            }

            fn session(&mut self) -> Session<'_> {
                DB::session(self)
            }
        }
    };
}

around!(Transaction<'_, DB>);
around!(PoolConnection<DB>);

#[cfg(feature = "_sql")]
macro_rules! kind {
    ($database:ty, $conn:ty, $variant:ident) => {
        impl Kind for $database {
            fn session(conn: &mut $conn) -> Session<'_> {
                Session::$variant(conn)
            }
        }

        impl Sealed for $conn {}

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
