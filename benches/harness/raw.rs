//! The raw side: what a first call and a replay need at the least, by the plain driver.
//!
//! A first call is an insert of the reservation and an update that records the payload if the owner
//! still is the same, each committed by itself. A replay is one keyed read. On Redis they are
//! `SET … NX GET PX`, a script that compares the owner and writes, and `GET`. Pools do not ping a
//! connection before they give it out.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use sqlx::mysql::{MySqlPool, MySqlPoolOptions};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};

use crate::keys::{key, mix};
use crate::ours::{ANSWER, RECORDED};
use crate::{BoxError, Side};

/// Connections of either side on a server.
pub const CONNECTIONS: u32 = 16;
const OLD: u64 = 1;
const FRESH: u64 = 2;
const DAY_MS: i64 = 86_400_000;

/// The numbers of new keys, and the owner of each.
#[derive(Debug, Clone, Default)]
struct Keys(Arc<AtomicU64>);

impl Keys {
    fn fresh(&self) -> ([u8; 32], [u8; 16]) {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        (key(FRESH, n), owner(n))
    }

    fn recorded(&self) -> [u8; 32] {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        key(OLD, mix(n) % RECORDED)
    }
}

fn owner(n: u64) -> [u8; 16] {
    let mut owner = [0; 16];
    owner.copy_from_slice(&key(3, n)[..16]);
    owner
}

fn payload() -> Vec<u8> {
    vec![b'x'; ANSWER]
}

fn one(what: &str, rows: u64) -> Result<(), BoxError> {
    if rows == 1 {
        return Ok(());
    }
    Err(format!("{what} changed {rows} rows").into())
}

/// A SQL database: its type, its pools, its placeholders.
macro_rules! raw_sql {
    ($name:ident, $pool:ty, $connect:expr, create: $create:literal, reserve: $reserve:literal,
     complete: $complete:literal, read: $read:literal) => {
        #[doc = concat!("Plain statements on a `", stringify!($pool), "`.")]
        #[derive(Debug, Clone)]
        pub struct $name {
            writes: $pool,
            reads: $pool,
            keys: Keys,
        }

        impl $name {
            /// Creates the table anew and puts the finished rows in.
            ///
            /// # Errors
            /// If the database does not answer.
            pub async fn new(at: &str) -> Result<Self, BoxError> {
                let connect: fn(String) -> _ = $connect;
                let (writes, reads): ($pool, $pool) = connect(at.to_owned()).await?;
                let mut conn = writes.acquire().await?;
                sqlx::query("DROP TABLE IF EXISTS raw_records")
                    .execute(&mut *conn)
                    .await?;
                sqlx::query(AssertSqlSafe($create))
                    .execute(&mut *conn)
                    .await?;
                drop(conn);
                let mut tx = writes.begin().await?;
                for n in 0..RECORDED {
                    let (k, o) = (key(OLD, n), owner(n));
                    sqlx::query($reserve)
                        .bind(&k[..])
                        .bind(&o[..])
                        .bind(0_i64)
                        .bind(DAY_MS)
                        .execute(&mut *tx)
                        .await?;
                    sqlx::query($complete)
                        .bind(payload())
                        .bind(DAY_MS)
                        .bind(&k[..])
                        .bind(&o[..])
                        .execute(&mut *tx)
                        .await?;
                }
                tx.commit().await?;
                Ok(Self {
                    writes,
                    reads,
                    keys: Keys::default(),
                })
            }

            /// Closes the connections.
            pub async fn close(&self) {
                self.writes.close().await;
                self.reads.close().await;
            }
        }

        impl Side for $name {
            async fn first(&self) -> Result<(), BoxError> {
                let (k, o) = self.keys.fresh();
                let reserved = sqlx::query($reserve)
                    .bind(&k[..])
                    .bind(&o[..])
                    .bind(0_i64)
                    .bind(DAY_MS)
                    .execute(&self.writes)
                    .await?;
                one("reserve", reserved.rows_affected())?;
                let completed = sqlx::query($complete)
                    .bind(payload())
                    .bind(DAY_MS)
                    .bind(&k[..])
                    .bind(&o[..])
                    .execute(&self.writes)
                    .await?;
                one("complete", completed.rows_affected())
            }

            async fn replay(&self) -> Result<(), BoxError> {
                let k = self.keys.recorded();
                let row = sqlx::query($read)
                    .bind(&k[..])
                    .fetch_one(&self.reads)
                    .await?;
                let kept: Vec<u8> = row.try_get(2)?;
                if kept.len() == ANSWER {
                    Ok(())
                } else {
                    Err("another payload".into())
                }
            }
        }
    };
}

raw_sql!(
    RawSqlite, SqlitePool, |path| async move { sqlite(Path::new(&path)).await },
    create: "CREATE TABLE raw_records (k BLOB NOT NULL PRIMARY KEY, st INTEGER NOT NULL,
        owner BLOB NOT NULL, payload BLOB, created INTEGER NOT NULL, expires INTEGER NOT NULL)",
    reserve: "INSERT INTO raw_records (k, st, owner, created, expires) VALUES (?, 0, ?, ?, ?)
        ON CONFLICT (k) DO NOTHING",
    complete: "UPDATE raw_records SET st = 2, payload = ?, expires = ? WHERE k = ? AND owner = ?",
    read: "SELECT st, owner, payload, expires FROM raw_records WHERE k = ?"
);

raw_sql!(
    RawPostgres, PgPool, |url| async move {
        let options = PgPoolOptions::new().max_connections(CONNECTIONS).min_connections(CONNECTIONS);
        let pool = options.test_before_acquire(false).connect(&url).await?;
        Ok::<_, BoxError>((pool.clone(), pool))
    },
    create: "CREATE TABLE raw_records (k bytea NOT NULL PRIMARY KEY, st smallint NOT NULL,
        owner bytea NOT NULL, payload bytea, created bigint NOT NULL, expires bigint NOT NULL)",
    reserve: "INSERT INTO raw_records (k, st, owner, created, expires) VALUES ($1, 0, $2, $3, $4)
        ON CONFLICT (k) DO NOTHING",
    complete: "UPDATE raw_records SET st = 2, payload = $1, expires = $2
        WHERE k = $3 AND owner = $4",
    read: "SELECT st, owner, payload, expires FROM raw_records WHERE k = $1"
);

raw_sql!(
    RawMySql, MySqlPool, |url| async move {
        let options = MySqlPoolOptions::new().max_connections(CONNECTIONS).min_connections(CONNECTIONS);
        let pool = options.test_before_acquire(false).connect(&url).await?;
        Ok::<_, BoxError>((pool.clone(), pool))
    },
    create: "CREATE TABLE raw_records (k binary(32) NOT NULL PRIMARY KEY, st smallint NOT NULL,
        owner binary(16) NOT NULL, payload longblob, created bigint NOT NULL,
        expires bigint NOT NULL) ENGINE = InnoDB",
    reserve: "INSERT IGNORE INTO raw_records (k, st, owner, created, expires)
        VALUES (?, 0, ?, ?, ?)",
    complete: "UPDATE raw_records SET st = 2, payload = ?, expires = ? WHERE k = ? AND owner = ?",
    read: "SELECT st, owner, payload, expires FROM raw_records WHERE k = ?"
);

/// One connection writes, since SQLite has one writer at a time: those that wait for each other
/// inside of SQLite sleep, and are slower. Four read.
async fn sqlite(path: &Path) -> Result<(SqlitePool, SqlitePool), BoxError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(5))
        .disable_statement_logging();
    let pool = |connections| {
        let pool = SqlitePoolOptions::new().max_connections(connections);
        let pool = pool.min_connections(connections).test_before_acquire(false);
        pool.connect_with(options.clone())
    };
    Ok((pool(1).await?, pool(4).await?))
}

/// A key of this run alone, since there is no table to create anew.
fn named(key: &[u8]) -> Vec<u8> {
    [b"raw:", &std::process::id().to_be_bytes()[..], key].concat()
}

/// Plain commands to Redis, by one connection that all callers share, as ours.
#[derive(Clone)]
pub struct RawRedis {
    connection: ConnectionManager,
    complete: Arc<redis::Script>,
    keys: Keys,
}

impl RawRedis {
    /// Connects, and puts the finished records in.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn new(url: &str) -> Result<Self, BoxError> {
        let config =
            ConnectionManagerConfig::new().set_response_timeout(Some(Duration::from_secs(5)));
        let client = redis::Client::open(url)?;
        let mut connection = ConnectionManager::new_with_config(client, config).await?;
        for n in 0..RECORDED / 1_000 {
            let mut pipeline = redis::pipe();
            for n in n * 1_000..(n + 1) * 1_000 {
                let value = [&owner(n)[..], &payload()].concat();
                let k = named(&key(OLD, n));
                pipeline
                    .cmd("SET")
                    .arg(k)
                    .arg(value)
                    .arg("PX")
                    .arg(DAY_MS)
                    .ignore();
            }
            pipeline.query_async::<()>(&mut connection).await?;
        }
        let complete = redis::Script::new(
            "if redis.call('GET', KEYS[1]) == ARGV[1] then
               redis.call('SET', KEYS[1], ARGV[1] .. ARGV[2], 'PX', ARGV[3])
               return 1
             end
             return 0",
        );
        Ok(Self {
            connection,
            complete: Arc::new(complete),
            keys: Keys::default(),
        })
    }

    /// How often the server writes its log to the disk.
    ///
    /// # Errors
    /// If the server does not say.
    pub async fn durability(&self) -> Result<String, BoxError> {
        let mut connection = self.connection.clone();
        let mut of = async |name: &str| -> Result<String, BoxError> {
            let mut config = redis::cmd("CONFIG");
            let config = config.arg("GET").arg(name);
            let (_, value): (String, String) = config.query_async(&mut connection).await?;
            Ok(value)
        };
        Ok(match of("appendonly").await?.as_str() {
            "yes" => format!("AOF {}", of("appendfsync").await?),
            _ => "no log".to_owned(),
        })
    }
}

impl Side for RawRedis {
    async fn first(&self) -> Result<(), BoxError> {
        let mut connection = self.connection.clone();
        let (k, o) = self.keys.fresh();
        let k = named(&k);
        let mut reserve = redis::cmd("SET");
        reserve
            .arg(&k)
            .arg(&o[..])
            .arg("NX")
            .arg("GET")
            .arg("PX")
            .arg(DAY_MS);
        let held: Option<Vec<u8>> = reserve.query_async(&mut connection).await?;
        if held.is_some() {
            return Err("a new key was held".into());
        }
        let mut complete = self.complete.key(k);
        let complete = complete.arg(&o[..]).arg(payload()).arg(DAY_MS);
        one("complete", complete.invoke_async(&mut connection).await?)
    }

    async fn replay(&self) -> Result<(), BoxError> {
        let mut connection = self.connection.clone();
        let k = named(&self.keys.recorded());
        let kept: Vec<u8> = redis::cmd("GET")
            .arg(k)
            .query_async(&mut connection)
            .await?;
        if kept.len() == ANSWER + 16 {
            Ok(())
        } else {
            Err("another payload".into())
        }
    }
}
