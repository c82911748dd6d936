//! A session of somebody else's with a server, next to the store's.

use std::any::Any;

use idem::sqlx::mysql::{MySqlPool, MySqlPoolOptions};
use idem::sqlx::postgres::{PgPool, PgPoolOptions};
use idem::sqlx::{
    AssertSqlSafe, Connection as _, MySqlConnection, PgConnection, query_scalar, raw_sql,
};
use idem::store::mysql::Dialect;
use idem::store::{MySqlStore, PostgresStore};
use idem::{Engine, EngineBuilder};

use crate::place::Server;

pub(crate) enum Session {
    Postgres(PgConnection),
    MySql(MySqlConnection),
}

impl Session {
    pub(crate) async fn open(url: &str) -> Self {
        if url.starts_with("postgres") {
            Self::Postgres(PgConnection::connect(url).await.unwrap())
        } else {
            Self::MySql(MySqlConnection::connect(url).await.unwrap())
        }
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        let sql = raw_sql(AssertSqlSafe(sql));
        match self {
            Self::Postgres(session) => drop(sql.execute(session).await.unwrap()),
            Self::MySql(session) => drop(sql.execute(session).await.unwrap()),
        }
    }

    /// Reads one number.
    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql);
        match self {
            Self::Postgres(session) => query_scalar(sql).fetch_one(session).await.unwrap(),
            Self::MySql(session) => query_scalar(sql).fetch_one(session).await.unwrap(),
        }
    }

    /// Waits until a number is at least so large.
    pub(crate) async fn until(&mut self, sql: &str, least: i64) {
        while self.number(sql).await < least {
            // `innodb_trx` shows nothing new to who asks more than ten times a
            // second.
            tokio::time::sleep(std::time::Duration::from_millis(120)).await;
        }
    }

    /// Writes the bytes as this server's SQL does.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> String {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Self::Postgres(_) => format!("'\\x{hex}'::bytea"),
            Self::MySql(_) => format!("x'{hex}'"),
        }
    }

    /// The number of statements on a table that wait for a lock, as SQL.
    pub(crate) fn waiting(&self, table: &str) -> String {
        match self {
            Self::Postgres(_) => format!(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock' \
                 and query like '%{table}%'"
            ),
            Self::MySql(_) => format!(
                "select count(*) from information_schema.innodb_trx \
                 where trx_state = 'LOCK WAIT' and trx_query like '%{table}%'"
            ),
        }
    }
}

/// A pool of the user's, which a store uses too.
#[derive(Clone)]
pub(crate) enum Pool {
    Postgres(PgPool),
    MySql(MySqlPool),
}

impl Pool {
    pub(crate) async fn open(url: &str, connections: u32) -> Self {
        if url.starts_with("postgres") {
            let options = PgPoolOptions::new().max_connections(connections);
            Self::Postgres(options.connect(url).await.unwrap())
        } else {
            let options = MySqlPoolOptions::new().max_connections(connections);
            Self::MySql(options.connect(url).await.unwrap())
        }
    }

    /// Takes a connection out of it until the answer is dropped.
    pub(crate) async fn take(&self) -> Box<dyn Any + Send> {
        match self {
            Self::Postgres(pool) => Box::new(pool.acquire().await.unwrap()),
            Self::MySql(pool) => Box::new(pool.acquire().await.unwrap()),
        }
    }

    /// How many of its connections are open, and how many of those nobody uses.
    pub(crate) fn open_and_idle(&self) -> (usize, usize) {
        let (open, idle) = match self {
            Self::Postgres(pool) => (pool.size(), pool.num_idle()),
            Self::MySql(pool) => (pool.size(), pool.num_idle()),
        };
        (usize::try_from(open).unwrap(), idle)
    }

    /// Opens a store on it, whose schema is there.
    pub(crate) async fn engine(&self, server: Server, prefix: &str) -> EngineBuilder {
        match self {
            Self::Postgres(pool) => {
                let options = PostgresStore::options().prefix(prefix);
                Engine::builder(options.from_pool(pool.clone()).unwrap())
            }
            Self::MySql(pool) => {
                let options = MySqlStore::options().prefix(prefix);
                let options = match server {
                    Server::MySql => options.dialect(Dialect::MySql),
                    _ => options,
                };
                Engine::builder(options.from_pool(pool.clone()).await.unwrap())
            }
        }
    }
}
