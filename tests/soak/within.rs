//! The operation in its caller's transaction, on the databases that have one: the
//! effect is a row, and kills and pauses hit it before, inside and after the
//! commit. Its connections are not cut: who loses one cannot tell a commit from
//! a rollback, and no promise says more.

use std::collections::{HashMap, HashSet};

use idem::sqlx::{self, AssertSqlSafe, SqlitePool};
use idem::transaction::{Session, TxConnection};
use idem::{Engine, Outcome, StoreError, StoreErrorKind, idempotent, observe};

use crate::dice::Dice;
use crate::journal::Told;
use crate::workload::{Answer, Order, Refusal};

pub(crate) const OPERATION: &str = "tx";

/// The user's side: a pool of its own, and the table.
#[derive(Debug)]
pub(crate) struct Database {
    pool: Pool,
    table: String,
}

#[derive(Debug)]
enum Pool {
    Sqlite(SqlitePool),
    #[cfg(feature = "servers")]
    Postgres(sqlx::PgPool),
    #[cfg(feature = "servers")]
    MySql(sqlx::MySqlPool),
}

/// Does the same with the pool of each database.
macro_rules! on {
    ($pool:expr, |$inner:ident| $call:expr) => {
        match $pool {
            Pool::Sqlite($inner) => $call,
            #[cfg(feature = "servers")]
            Pool::Postgres($inner) => $call,
            #[cfg(feature = "servers")]
            Pool::MySql($inner) => $call,
        }
    };
}

/// A row: a key, and what its body answered.
type Row = (i64, String);

impl Database {
    /// Opens the database of a place, if it has transactions.
    pub(crate) async fn open(place: &str) -> Option<Self> {
        let words: Vec<&str> = place.split(' ').collect();
        let (pool, prefix) = match words[..] {
            #[cfg(feature = "servers")]
            ["servers::postgres", prefix, url] => {
                let pool = sqlx::PgPool::connect(url).await.unwrap();
                (Pool::Postgres(pool), prefix)
            }
            #[cfg(feature = "servers")]
            ["servers::mariadb" | "servers::mysql", prefix, url] => {
                let pool = sqlx::MySqlPool::connect(url).await.unwrap();
                (Pool::MySql(pool), prefix)
            }
            [file] => {
                let url = format!("sqlite://{file}");
                (Pool::Sqlite(SqlitePool::connect(&url).await.unwrap()), "")
            }
            _ => return None,
        };
        let table = format!("{prefix}rows");
        Some(Self { pool, table })
    }

    /// Makes the table; it has no key of its own, which would hide a second row.
    pub(crate) async fn create(&self) {
        let table = &self.table;
        let create = format!("create table {table} (number bigint, answer varchar(100))");
        let create = AssertSqlSafe(create);
        on!(&self.pool, |pool| drop(
            sqlx::query(create).execute(pool).await.unwrap()
        ));
    }

    pub(crate) async fn rows(&self) -> Vec<Row> {
        let select = format!("select number, answer from {}", self.table);
        let select = AssertSqlSafe(select);
        on!(&self.pool, |pool| sqlx::query_as(select)
            .fetch_all(pool)
            .await
            .unwrap())
    }

    /// Begins, calls, and ends as the guide says. What is told as recorded is
    /// committed.
    pub(crate) async fn call(&self, engine: &Engine, order: Order) -> (Answer, Option<Outcome>) {
        macro_rules! call {
            ($begin:expr) => {{
                let Ok(mut tx) = $begin.await else {
                    return (Err(Refusal::Engine(away().into())), None);
                };
                let written = write(&mut tx, engine, &self.table, order);
                let (answer, outcome) = observe(written).await;
                if answer.is_err() {
                    tx.rollback().await.ok();
                    return (answer, outcome);
                }
                match tx.commit().await {
                    Ok(()) => (answer, outcome),
                    Err(_) => (Err(Refusal::Engine(away().into())), None),
                }
            }};
        }
        match &self.pool {
            Pool::Sqlite(pool) => call!(pool.begin_with("BEGIN IMMEDIATE")),
            #[cfg(feature = "servers")]
            Pool::Postgres(pool) => call!(pool.begin()),
            #[cfg(feature = "servers")]
            Pool::MySql(pool) => call!(pool.begin()),
        }
    }
}

fn away() -> StoreError {
    StoreError::new(StoreErrorKind::Transient, "no transaction")
}

#[idempotent(name = "tx", key = order.key, payload = order.payload, ttl = "1h", engine = engine, on_in_progress = wait("3s"), tx = conn)]
async fn write<C: TxConnection>(
    conn: &mut C,
    engine: &Engine,
    table: &str,
    order: Order,
) -> Answer {
    let mut dice = Dice::new(order.dice);
    let value = format!("{}-{}-{:x}", order.key, std::process::id(), dice.roll());
    let fate = dice.below(20);
    let insert = format!("insert into {table} values ({}, '{value}')", order.key);
    let insert = AssertSqlSafe(insert);
    let written = match conn.session() {
        Session::Sqlite(conn) => sqlx::query(insert).execute(conn).await.map(drop),
        #[cfg(feature = "servers")]
        Session::Postgres(conn) => sqlx::query(insert).execute(conn).await.map(drop),
        #[cfg(feature = "servers")]
        Session::MySql(conn) => sqlx::query(insert).execute(conn).await.map(drop),
        _ => panic!("no such database"),
    };
    if written.is_err() {
        return Err(Refusal::Engine(away().into()));
    }
    // Short: on SQLite everybody else waits.
    tokio::time::sleep(dice.millis(0, 5)).await;
    match fate {
        0 => panic!("a body that panics"),
        1..4 => Err(Refusal::Declined(value)),
        _ => Ok(value),
    }
}

/// What the rows say that callers must have been told. `settled` is what a call
/// of each key was told after all faults were over, before `rows` were read.
pub(crate) fn audit(rows: &[Row], told: &[Told], settled: &[Told]) -> Vec<String> {
    let mut violations = Vec::new();
    let mut by_key: HashMap<u64, &str> = HashMap::new();
    for (key, value) in rows {
        let key = u64::try_from(*key).unwrap();
        if let Some(other) = by_key.insert(key, value) {
            violations.push(format!("tx {key}: two rows, {other} and {value}"));
        }
    }
    for line in told.iter().chain(settled) {
        let Some(value) = &line.value else { continue };
        let row = by_key.get(&line.key).copied();
        // What is not recorded was rolled back.
        let is_there = row == Some(value.as_str());
        if is_there != line.recorded {
            violations.push(format!("tx: the row is {row:?}, but {line:?}"));
        }
    }
    let answered = settled.iter().filter(|line| line.recorded);
    let answered: HashSet<u64> = answered.map(|line| line.key).collect();
    for line in settled {
        // Nothing that was cut off is in doubt: it is there, or never was.
        let fine = matches!(
            line.how.as_str(),
            "executed" | "replayed" | "mismatch" | "panicked"
        );
        if !fine {
            violations.push(format!("tx {} ended {}", line.key, line.how));
        }
        let has_row = by_key.contains_key(&line.key);
        if line.how != "mismatch" && has_row && !answered.contains(&line.key) {
            violations.push(format!("tx {}: a row without its answer", line.key));
        }
    }
    violations
}
