//! The database: payments, and an outbox of e-mails. The records of `idem` are in it as well.
//!
//! Neither table has a unique key, which would hide what this example is to show.

use std::time::Duration;

use idem::sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use idem::sqlx::{self, Sqlite, Transaction, query, query_as, query_scalar};
#[cfg(feature = "servers")]
use idem::sqlx::{PgPool, Postgres};
use idem::transaction::Session;
use idem::{Engine, EngineBuilder};

use super::BoxError;
use super::book::{BookError, book as annotated};
use super::payment::Payment;
use super::watch::Watch;

const TABLES: [&str; 4] = [
    "drop table if exists broker_payments",
    "drop table if exists broker_outbox",
    "create table broker_payments (id text not null, customer text not null, cents bigint not null)",
    "create table broker_outbox (id text not null, customer text not null, cents bigint not null,
        sent bigint not null default 0)",
];
const BOOK: &str = "insert into broker_payments (id, customer, cents) values ($1, $2, $3)";
const POST: &str = "insert into broker_outbox (id, customer, cents) values ($1, $2, $3)";
const UNSENT: &str = "select id, customer, cents from broker_outbox where sent = 0 limit 64";
const SENT: &str = "update broker_outbox set sent = 1 where id = $1";
const BOOKED: &str = "select count(*) from broker_payments where id = $1";
const EFFECTS: &str = "select count(*), count(distinct id) from broker_payments";
const OPEN: &str = "select count(*) from broker_outbox where sent = 0";

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Books {
    Sqlite(SqlitePool),
    #[cfg(feature = "servers")]
    Postgres(PgPool),
}

/// A transaction of the consumer's own.
pub(super) enum Tx {
    Sqlite(Transaction<'static, Sqlite>),
    #[cfg(feature = "servers")]
    Postgres(Transaction<'static, Postgres>),
}

/// The same work on either database.
macro_rules! on {
    ($kind:ident, $value:expr, $inner:ident => $work:expr) => {
        match $value {
            $kind::Sqlite($inner) => $work,
            #[cfg(feature = "servers")]
            $kind::Postgres($inner) => $work,
        }
    };
}

impl Books {
    /// Opens the database, and an engine whose records are in it.
    pub(crate) async fn open(url: &str, namespace: &str) -> Result<(Self, Engine), BoxError> {
        let (books, builder) = Self::connect(url).await?;
        let engine = builder
            .namespace(namespace)
            .lease(Duration::from_secs(5))
            .build()
            .await?;
        Ok((books, engine))
    }

    async fn connect(url: &str) -> Result<(Self, EngineBuilder), BoxError> {
        match url.split_once("://") {
            Some(("sqlite", path)) => {
                let store = idem::store::SqliteStore::open(path).await?;
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .create_if_missing(true)
                    .busy_timeout(Duration::from_secs(30))
                    .journal_mode(SqliteJournalMode::Wal)
                    // On disk before it is acknowledged.
                    .synchronous(SqliteSynchronous::Full);
                let pool = SqlitePoolOptions::new().max_connections(2);
                let pool = pool.connect_with(options).await?;
                Ok((Self::Sqlite(pool), Engine::builder(store)))
            }
            #[cfg(feature = "servers")]
            Some(("postgres" | "postgresql", _)) => {
                let store = idem::store::PostgresStore::connect(url).await?;
                store.migrate().await?;
                let pool = PgPool::connect(url).await?;
                Ok((Self::Postgres(pool), Engine::builder(store)))
            }
            _ => Err("a store is sqlite://PATH or, with `--features servers`, postgres://…".into()),
        }
    }

    /// Begins with empty tables.
    pub(super) async fn clear(&self) -> Result<(), BoxError> {
        on!(Self, self, pool => for statement in TABLES {
            query(statement).execute(pool).await?;
        });
        Ok(())
    }

    pub(super) async fn begin(&self) -> Result<Tx, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(pool) => Tx::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            #[cfg(feature = "servers")]
            Self::Postgres(pool) => Tx::Postgres(pool.begin().await?),
        })
    }

    /// E-mails that are not known to be sent.
    pub(super) async fn unsent(&self) -> Result<Vec<(String, String, i64)>, sqlx::Error> {
        on!(Self, self, pool => query_as(UNSENT).fetch_all(pool).await)
    }

    pub(super) async fn mark_sent(&self, id: &str) -> Result<(), sqlx::Error> {
        on!(Self, self, pool => query(SENT).bind(id).execute(pool).await.map(|_| ()))
    }

    /// How many e-mails are not known to be sent.
    pub(super) async fn open_mails(&self) -> Result<i64, sqlx::Error> {
        on!(Self, self, pool => query_scalar(OPEN).fetch_one(pool).await)
    }

    /// How often this payment is booked, as everybody can see it.
    pub(super) async fn booked(&self, id: &str) -> Result<i64, sqlx::Error> {
        on!(Self, self, pool => query_scalar(BOOKED).bind(id).fetch_one(pool).await)
    }

    /// How many payments are booked, and how many different ones.
    pub(super) async fn effects(&self) -> Result<(i64, i64), sqlx::Error> {
        on!(Self, self, pool => query_as(EFFECTS).fetch_one(pool).await)
    }
}

impl Tx {
    pub(super) async fn book(
        &mut self,
        payment: &Payment,
        watch: &Watch,
    ) -> Result<i64, BookError> {
        on!(Self, self, tx => annotated(tx, payment, watch).await)
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        on!(Self, self, tx => tx.commit().await)
    }

    pub(super) async fn rollback(self) -> Result<(), sqlx::Error> {
        on!(Self, self, tx => tx.rollback().await)
    }
}

/// Books the payment.
pub(super) async fn book(session: &mut Session<'_>, payment: &Payment) -> Result<(), sqlx::Error> {
    insert(session, BOOK, payment).await
}

/// Leaves an e-mail in the outbox. Its id is the payment's, since there is one for each.
pub(super) async fn post(session: &mut Session<'_>, payment: &Payment) -> Result<(), sqlx::Error> {
    insert(session, POST, payment).await
}

async fn insert(
    session: &mut Session<'_>,
    statement: &'static str,
    payment: &Payment,
) -> Result<(), sqlx::Error> {
    let Payment {
        id,
        customer,
        cents,
    } = payment;
    let done = match session {
        Session::Sqlite(conn) => {
            let insert = query(statement).bind(id).bind(customer).bind(cents);
            insert.execute(&mut **conn).await?.rows_affected()
        }
        #[cfg(feature = "servers")]
        Session::Postgres(conn) => {
            let insert = query(statement).bind(id).bind(customer).bind(cents);
            insert.execute(&mut **conn).await?.rows_affected()
        }
        // `Books` opens no other.
        _ => 0,
    };
    match done {
        1 => Ok(()),
        _ => Err(sqlx::Error::RowNotFound),
    }
}
