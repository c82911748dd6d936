//! The database of the CRM: its customers, and a ledger with a line for each body that ran, which
//! shows what the rows alone cannot: that none was written twice.

#[cfg(feature = "servers")]
use idem::sqlx::PgPool;
use idem::sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use idem::sqlx::{query, query_scalar};

use crate::BoxError;
use crate::customer::Customer;

const TABLES: [&str; 2] = [
    "create table if not exists crm_sync_customers (
        id text not null primary key, name text not null, email text not null,
        updated_at bigint not null)",
    "create table if not exists crm_sync_bodies (id text not null, updated_at bigint not null)",
];
const DROP: [&str; 2] = [
    "drop table if exists crm_sync_customers",
    "drop table if exists crm_sync_bodies",
];
const BODY: &str = "insert into crm_sync_bodies (id, updated_at) values ($1, $2)";
/// Writes over nothing but older versions.
const WRITE: &str = "insert into crm_sync_customers (id, name, email, updated_at)
    values ($1, $2, $3, $4)
    on conflict (id) do update
    set name = excluded.name, email = excluded.email, updated_at = excluded.updated_at
    where excluded.updated_at > crm_sync_customers.updated_at";

const ROWS: &str = "select count(*) from crm_sync_customers";
const BODIES: &str = "select count(*) from crm_sync_bodies";
const TWICE: &str = "select count(*) from
    (select 1 from crm_sync_bodies group by id, updated_at having count(*) > 1) twice";
const AT: &str = "select updated_at from crm_sync_customers where id = $1";

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Crm {
    Sqlite(SqlitePool),
    #[cfg(feature = "servers")]
    Postgres(PgPool),
}

/// The same work on either database.
macro_rules! on {
    ($crm:expr, $pool:ident => $work:expr) => {
        match $crm {
            Crm::Sqlite($pool) => $work,
            #[cfg(feature = "servers")]
            Crm::Postgres($pool) => $work,
        }
    };
}

impl Crm {
    /// Opens the database and makes its tables, if they are not there.
    pub(crate) async fn open(url: &str) -> Result<Self, BoxError> {
        let crm = match url.split_once("://") {
            Some(("sqlite", path)) => {
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Normal);
                let pool = SqlitePoolOptions::new().max_connections(1);
                Self::Sqlite(pool.connect_with(options).await?)
            }
            #[cfg(feature = "servers")]
            Some(("postgres" | "postgresql", _)) => Self::Postgres(PgPool::connect(url).await?),
            _ => {
                return Err(
                    "a database is sqlite://PATH or, with `--features servers`, postgres://…"
                        .into(),
                );
            }
        };
        on!(&crm, pool => for table in TABLES {
            query(table).execute(pool).await?;
        });
        Ok(crm)
    }

    /// Begins with empty tables.
    pub(crate) async fn anew(url: &str) -> Result<Self, BoxError> {
        let crm = Self::open(url).await?;
        on!(&crm, pool => for table in DROP.iter().chain(&TABLES) {
            query(*table).execute(pool).await?;
        });
        Ok(crm)
    }

    /// Writes a line into the ledger and, if the table has nothing newer, the customer: both or
    /// neither. Returns whether it was written.
    pub(crate) async fn write(&self, customer: &Customer) -> Result<bool, idem::sqlx::Error> {
        let updated_at = i64::from(customer.updated_at);
        on!(self, pool => {
            let mut transaction = pool.begin().await?;
            let body = query(BODY).bind(&customer.id).bind(updated_at);
            body.execute(&mut *transaction).await?;
            let write = query(WRITE)
                .bind(&customer.id)
                .bind(&customer.name)
                .bind(&customer.email)
                .bind(updated_at);
            let written = write.execute(&mut *transaction).await?.rows_affected();
            transaction.commit().await?;
            Ok(written == 1)
        })
    }

    /// How many customers there are.
    pub(crate) async fn rows(&self) -> Result<i64, BoxError> {
        Ok(on!(self, pool => query_scalar(ROWS).fetch_one(pool).await?))
    }

    /// How many bodies have run.
    pub(crate) async fn bodies(&self) -> Result<i64, BoxError> {
        Ok(on!(self, pool => query_scalar(BODIES).fetch_one(pool).await?))
    }

    /// For how many versions of customers more than one body has run.
    pub(crate) async fn twice(&self) -> Result<i64, BoxError> {
        Ok(on!(self, pool => query_scalar(TWICE).fetch_one(pool).await?))
    }

    /// Which version of a customer is there.
    pub(crate) async fn version(&self, id: &str) -> Result<i64, BoxError> {
        Ok(on!(self, pool => query_scalar(AT).bind(id).fetch_one(pool).await?))
    }
}
