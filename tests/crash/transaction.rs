//! `kill -9` inside of the caller's transaction; then the same call in another
//! process. Before the commit nothing has happened, after it the answer is there.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use idem::inbox::Received;
use idem::sqlx::{self, AssertSqlSafe, SqlitePool};
use idem::store::SqliteStore;
use idem::transaction::{Session, TxConnection};
use idem::{Engine, Error, fault, idempotent};
use libtest_mimic::{Failed, Trial};

use crate::place::Kind;
use crate::victim::{AFTER_EFFECT, BEFORE_EFFECT, stop_here};

const BEFORE_COMMIT: &str = "before-commit";
const AFTER_COMMIT: &str = "after-commit";
/// A consumer that has committed and not yet told its broker.
const BEFORE_ACK: &str = "before-ack";
const POINTS: &[&str] = &[
    "before-reserve",
    "after-reserve",
    "before-body",
    BEFORE_EFFECT,
    AFTER_EFFECT,
    "after-body",
    "before-complete",
    "after-complete",
    BEFORE_COMMIT,
    AFTER_COMMIT,
    BEFORE_ACK,
];

pub(crate) fn cases() -> impl Iterator<Item = Trial> {
    let kinds = Kind::ALL.iter().filter(|kind| kind.is_sql());
    kinds.flat_map(|&kind| {
        POINTS.iter().map(move |&point| {
            let name = format!("tx::{}::{point}", kind.name());
            Trial::test(name, move || case(kind, point))
        })
    })
}

fn case(kind: Kind, point: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let place = kind.place(folder.path());
    let runtime = tokio::runtime::Runtime::new()?;
    let database = runtime.block_on(Database::open(&place));
    runtime.block_on(database.create());

    let mut child = Command::new(std::env::current_exe()?)
        .args(["tx-victim", point, &place])
        // Open and silent: a line would wake it.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let reached = wait_for_point(&mut child, point);
    // SIGKILL: nothing of the process runs after it.
    child.kill()?;
    child.wait()?;
    reached?;

    let (first, second, rows) = runtime.block_on(async {
        let (first, second) = if point == BEFORE_ACK {
            (database.receive("").await, database.receive("").await)
        } else {
            (database.call("").await, database.call("").await)
        };
        (first, second, database.rows().await)
    });
    let victims = [AFTER_COMMIT, BEFORE_ACK].contains(&point);
    let expected = if victims { "victim" } else { "survivor" };
    // Whose body ran is whose answer and whose row it is.
    let answers = [first?, second?];
    if answers.iter().any(|answer| answer != expected) || rows != [expected] {
        return Err(
            format!("expected one row of the {expected}, found {rows:?}, {answers:?}").into(),
        );
    }
    Ok(())
}

fn wait_for_point(child: &mut Child, point: &str) -> Result<(), Failed> {
    let stdout = child.stdout.take().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    if line.trim_end() == format!("AT {point}") {
        return Ok(());
    }
    Err(format!("the victim did not stop at {point} but said {line:?}").into())
}

/// Runs up to a point and waits there to be killed.
#[tokio::main]
pub(crate) async fn die(args: &[String]) {
    let [stop, place] = args else {
        panic!("usage: tx-victim POINT PLACE");
    };
    if let Some(point) = fault::POINTS.iter().copied().find(|point| point == stop) {
        fault::set(point, move || stop_here(point));
    }
    let database = Database::open(place).await;
    let answer = if stop == BEFORE_ACK {
        database.receive(stop).await
    } else {
        database.call(stop).await
    };
    println!("ENDED {answer:?}");
}

#[idempotent(key = engine_key(), ttl = "1h", name = "crash.row", engine = engine, on_in_progress = wait("20s"), tx = conn)]
async fn write<C: TxConnection>(
    conn: &mut C,
    engine: &Engine,
    table: &str,
    stop: &str,
) -> Result<String, Error> {
    if stop == BEFORE_EFFECT {
        stop_here(BEFORE_EFFECT).await;
    }
    let who = insert(conn.session(), table, stop).await;
    if stop == AFTER_EFFECT {
        stop_here(AFTER_EFFECT).await;
    }
    Ok(who)
}

/// Writes the row, and says whose it is.
async fn insert(session: Session<'_>, table: &str, stop: &str) -> String {
    let who = if stop.is_empty() {
        "survivor"
    } else {
        "victim"
    };
    let insert = AssertSqlSafe(format!("insert into {table} values ('{who}')"));
    match session {
        Session::Sqlite(conn) => drop(sqlx::query(insert).execute(conn).await.unwrap()),
        #[cfg(feature = "servers")]
        Session::Postgres(conn) => drop(sqlx::query(insert).execute(conn).await.unwrap()),
        #[cfg(feature = "servers")]
        Session::MySql(conn) => drop(sqlx::query(insert).execute(conn).await.unwrap()),
        _ => panic!("no such database"),
    }
    who.to_owned()
}

/// One key for all, which is no constant to the attribute.
fn engine_key() -> u32 {
    7
}

/// A pool of the user's, and an engine on the same database.
struct Database {
    pool: Pool,
    engine: Engine,
    table: String,
}

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

impl Database {
    async fn open(place: &str) -> Self {
        let words: Vec<&str> = place.split(' ').collect();
        let (pool, builder, prefix) = match words[..] {
            #[cfg(feature = "servers")]
            ["servers::postgres", prefix, url] => {
                let pool = sqlx::PgPool::connect(url).await.unwrap();
                let options = idem::store::PostgresStore::options().prefix(prefix);
                let store = options.from_pool(pool.clone()).unwrap();
                store.migrate().await.unwrap();
                (Pool::Postgres(pool), Engine::builder(store), prefix)
            }
            #[cfg(feature = "servers")]
            ["servers::mariadb" | "servers::mysql", prefix, url] => {
                let pool = sqlx::MySqlPool::connect(url).await.unwrap();
                let options = idem::store::MySqlStore::options().prefix(prefix);
                let dialect = if words[0] == "servers::mysql" {
                    idem::store::mysql::Dialect::MySql
                } else {
                    idem::store::mysql::Dialect::MariaDb
                };
                let store = options
                    .dialect(dialect)
                    .from_pool(pool.clone())
                    .await
                    .unwrap();
                store.migrate().await.unwrap();
                (Pool::MySql(pool), Engine::builder(store), prefix)
            }
            [file] => {
                let store = SqliteStore::open(file).await.unwrap();
                let pool = SqlitePool::connect(&format!("sqlite://{file}"))
                    .await
                    .unwrap();
                (Pool::Sqlite(pool), Engine::builder(store), "")
            }
            _ => panic!("{place} is not a place"),
        };
        Self {
            pool,
            engine: builder.namespace("crash").build().await.unwrap(),
            table: format!("{prefix}rows"),
        }
    }

    async fn create(&self) {
        let create = format!("create table {} (who varchar(10))", self.table);
        on!(&self.pool, |pool| drop(
            sqlx::query(AssertSqlSafe(create))
                .execute(pool)
                .await
                .unwrap()
        ));
    }

    async fn rows(&self) -> Vec<String> {
        let select = format!("select who from {}", self.table);
        on!(&self.pool, |pool| sqlx::query_scalar(AssertSqlSafe(select))
            .fetch_all(pool)
            .await
            .unwrap())
    }

    /// Begins, calls and commits.
    async fn call(&self, stop: &str) -> Result<String, Error> {
        macro_rules! call {
            ($begin:expr) => {{
                let mut tx = $begin.await.unwrap();
                let answer = write(&mut tx, &self.engine, &self.table, stop).await?;
                if stop == BEFORE_COMMIT {
                    stop_here(BEFORE_COMMIT).await;
                }
                tx.commit().await.unwrap();
                answer
            }};
        }
        let answer = match &self.pool {
            Pool::Sqlite(pool) => call!(pool.begin_with("BEGIN IMMEDIATE")),
            #[cfg(feature = "servers")]
            Pool::Postgres(pool) => call!(pool.begin()),
            #[cfg(feature = "servers")]
            Pool::MySql(pool) => call!(pool.begin()),
        };
        if stop == AFTER_COMMIT {
            stop_here(AFTER_COMMIT).await;
        }
        Ok(answer)
    }

    /// One delivery of a message, up to where the broker would be told.
    async fn receive(&self, stop: &str) -> Result<String, Error> {
        let message = self.engine.inbox("crash.inbox").message("7");
        macro_rules! receive {
            ($begin:expr) => {{
                let mut tx = $begin.await.unwrap();
                let handled = message.receive_in(&mut tx, async |conn| {
                    Ok::<_, Error>(insert(conn.session(), &self.table, stop).await)
                });
                let uncommitted = handled.await;
                assert!(!uncommitted.must_roll_back());
                tx.commit().await.unwrap();
                uncommitted.ended()
            }};
        }
        let received = match &self.pool {
            Pool::Sqlite(pool) => receive!(pool.begin_with("BEGIN IMMEDIATE")),
            #[cfg(feature = "servers")]
            Pool::Postgres(pool) => receive!(pool.begin()),
            #[cfg(feature = "servers")]
            Pool::MySql(pool) => receive!(pool.begin()),
        };
        if stop == BEFORE_ACK {
            stop_here(BEFORE_ACK).await;
        }
        match received {
            Received::First(who) | Received::Duplicate(who) => Ok(who),
            other => panic!("{other:?}"),
        }
    }
}
