//! What a record takes in each store, and what a first call writes.
//!
//! **Shows**, after 100,000 first calls by 64 callers, each with an answer of 300 bytes: the bytes of
//! tables and indexes for each record, and, where the server counts them, the bytes of the log and
//! the commits for each call.
//!
//! **Run** it, against servers with durable settings:
//!
//! ```text
//! eval "$(scripts/stores up --durable postgres mariadb redis)"
//! cargo bench --manifest-path benches/Cargo.toml --bench capacity
//! scripts/stores down
//! ```

use std::time::Duration;

use harness::figures::number;
use harness::options::url;
use harness::ours::Ours;
use harness::{BoxError, Options, on_two_threads};
use idem::store::{MySqlStore, PostgresStore, RedisStore, SqliteStore};
use redis::aio::ConnectionManager;
use serde_json::{Value, json};
use sqlx::mysql::MySqlPool;
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, query, query_as, query_scalar};

fn main() -> Result<(), BoxError> {
    let options = Options::of_command_line()?;
    on_two_threads(measure(options))
}

async fn measure(options: Options) -> Result<(), BoxError> {
    let calls = if options.quick { 5_000 } else { 100_000 };
    println!("{} first calls by 64 callers", number(calls as f64));
    if options.wants("sqlite") {
        sqlite(&options, calls).await?;
    }
    if options.wants("postgres") {
        postgres(&options, calls, &url("postgres")?).await?;
    }
    if options.wants("mariadb") {
        mariadb(&options, calls, &url("mysql")?).await?;
    }
    if options.wants("redis") {
        redis_bytes(&options, calls, &url("redis")?).await?;
    }
    Ok(())
}

/// Prints and notes what one store takes: for each call, so that the total is not what counts.
fn say(options: &Options, store: &str, calls: u64, totals: &[(&str, f64)]) -> Result<(), BoxError> {
    let mut line = json!({ "bench": "capacity", "store": store, "calls": calls });
    print!("{store:<9}");
    for (what, total) in totals {
        let each = total / calls as f64;
        print!("  {what}: {}", number(each));
        if let Value::Object(line) = &mut line {
            line.insert((*what).to_owned(), json!(each));
        }
    }
    println!();
    options.note(&line)
}

async fn sqlite(options: &Options, calls: u64) -> Result<(), BoxError> {
    let name = format!("idem-capacity-{}.db", std::process::id());
    let path = std::env::temp_dir().join(name);
    let ours = Ours::new(SqliteStore::open(&path).await?, calls).await?;
    // Closed, the file is whole: its log has been written back.
    ours.engine().shutdown(Duration::from_secs(10)).await?;
    drop(ours);
    let pool = sqlx::sqlite::SqlitePool::connect(&format!("sqlite://{}", path.display())).await?;
    query("pragma wal_checkpoint(truncate)")
        .execute(&pool)
        .await?;
    let pages: i64 = query_scalar("pragma page_count").fetch_one(&pool).await?;
    let page: i64 = query_scalar("pragma page_size").fetch_one(&pool).await?;
    pool.close().await;
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", path.display())).ok();
    }
    say(
        options,
        "sqlite",
        calls,
        &[("bytes", (pages * page) as f64)],
    )
}

async fn postgres(options: &Options, calls: u64, url: &str) -> Result<(), BoxError> {
    let prefix = format!("capacity{}_", std::process::id());
    let store = PostgresStore::options()
        .prefix(&prefix)
        .connections(16)
        .connect(url)
        .await?;
    store.migrate().await?;
    let pool = PgPool::connect(url).await?;
    let before = postgres_counters(&pool).await?;
    Ours::new(store, calls).await?;
    let after = postgres_counters(&pool).await?;
    let table = format!("{prefix}records");
    let size = format!("select pg_total_relation_size('{table}')::float8");
    let used: f64 = query_scalar(AssertSqlSafe(size.as_str()))
        .fetch_one(&pool)
        .await?;
    query(AssertSqlSafe(format!("vacuum full {table}")))
        .execute(&pool)
        .await?;
    let packed: f64 = query_scalar(AssertSqlSafe(size.as_str()))
        .fetch_one(&pool)
        .await?;
    pool.close().await;
    say(
        options,
        "postgres",
        calls,
        &[
            ("bytes", used),
            ("bytes packed", packed),
            ("log bytes", after.0 - before.0),
            ("commits", after.1 - before.1),
        ],
    )
}

/// The end of the log, and the commits so far.
async fn postgres_counters(pool: &PgPool) -> Result<(f64, f64), BoxError> {
    // Sessions tell their counts when they are idle, once a second at most.
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(query_as(
        "select (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8, xact_commit::float8
         from pg_stat_database where datname = current_database()",
    )
    .fetch_one(pool)
    .await?)
}

async fn mariadb(options: &Options, calls: u64, url: &str) -> Result<(), BoxError> {
    let prefix = format!("capacity{}_", std::process::id());
    let store = MySqlStore::options()
        .prefix(&prefix)
        .connections(16)
        .connect(url)
        .await?;
    store.migrate().await?;
    let pool = MySqlPool::connect(url).await?;
    let log = async || -> Result<f64, BoxError> {
        let status = "show global status like 'Innodb_os_log_written'";
        let (_, bytes): (String, String) = query_as(status).fetch_one(&pool).await?;
        Ok(bytes.parse()?)
    };
    let before = log().await?;
    Ours::new(store, calls).await?;
    let written = log().await? - before;
    query(AssertSqlSafe(format!("analyze table {prefix}records")))
        .execute(&pool)
        .await?;
    let used: f64 = query_scalar(
        "select cast(data_length + index_length as double) from information_schema.tables
         where table_schema = database() and table_name = ?",
    )
    .bind(format!("{prefix}records"))
    .fetch_one(&pool)
    .await?;
    pool.close().await;
    say(
        options,
        "mariadb",
        calls,
        &[("bytes", used), ("log bytes", written)],
    )
}

async fn redis_bytes(options: &Options, calls: u64, url: &str) -> Result<(), BoxError> {
    let prefix = format!("capacity{}:", std::process::id());
    let client = redis::Client::open(url)?;
    let mut connection = ConnectionManager::new(client).await?;
    let info = async |connection: &mut ConnectionManager, part: &str, name: &str| {
        let text: String = redis::cmd("INFO").arg(part).query_async(connection).await?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok::<_, BoxError>(line.ok_or("INFO lacks a line")?.parse::<f64>()?)
    };
    // A log that is written anew meanwhile is shorter than what was logged.
    let still = ["SET", "auto-aof-rewrite-percentage", "0"];
    let _: () = redis::cmd("CONFIG")
        .arg(&still)
        .query_async(&mut connection)
        .await?;
    let memory = info(&mut connection, "memory", "used_memory").await?;
    let log = info(&mut connection, "persistence", "aof_current_size").await?;
    let store = RedisStore::options().prefix(&prefix).connect(url).await?;
    Ours::new(store, calls).await?;
    let memory = info(&mut connection, "memory", "used_memory").await? - memory;
    let log = info(&mut connection, "persistence", "aof_current_size").await? - log;
    say(
        options,
        "redis",
        calls,
        &[("bytes", memory), ("log bytes", log)],
    )
}
