//! What callers notice of a sweep: a million expired rows are deleted on Postgres while 64 callers
//! work.
//!
//! **Shows** the times of calls (each key is called twice: a first call and a replay) in two phases
//! of equal work, without a sweep and while one runs, and how fast it deletes. A call that fails ends
//! the program. On two cores, which the server shared, not optimized: 1,000,000 rows in 64 s; calls
//! per second 1,378 and 1,149, p99 83 and 122 ms.
//!
//! **Run** it, against a server with durable settings:
//!
//! ```text
//! eval "$(scripts/stores up --durable postgres)"
//! cargo bench --manifest-path benches/Cargo.toml --bench sweep_under_load
//! scripts/stores down
//! ```

use std::time::Duration;

use idem::sqlx::{AssertSqlSafe, PgPool, query, query_scalar};
use idem::store::PostgresStore;
use idem::{Clock as _, Engine, Error, SystemClock};

const ROWS: i64 = 1_000_000;
const CALLERS: u32 = 64;
const PREFIX: &str = "sweep_bench_";
const TTL: Duration = Duration::from_secs(3600);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let url = std::env::var("IDEM_TEST_POSTGRES_URL")
        .map_err(|_| "IDEM_TEST_POSTGRES_URL is not set: eval \"$(scripts/stores up postgres)\"")?;
    let pool = PgPool::connect(&url).await?;
    drop_tables(&pool).await?;
    let store = PostgresStore::options()
        .prefix(PREFIX)
        .connections(16)
        .connect(&url)
        .await?;
    store.migrate().await?;
    let engine = Engine::builder(store).namespace("bench").build().await?;

    // Both phases begin with the same table, so that only the sweep differs.
    load(&pool).await?;
    phase(&engine, "warm", Duration::from_secs(5), None).await?;
    phase(&engine, "without", Duration::from_secs(30), None).await?;
    let sweeping = engine.clone();
    let sweep = tokio::spawn(async move {
        let clock = SystemClock;
        let begun = clock.monotonic();
        let rows = sweeping.sweep().await?;
        Ok::<_, Error>((rows, clock.monotonic() - begun))
    });
    phase(&engine, "with", Duration::from_secs(30), Some(&sweep)).await?;
    let (rows, took) = sweep.await??;
    let left: i64 = query_scalar(AssertSqlSafe(format!(
        "select count(*) from {PREFIX}records where operation = 'old'"
    )))
    .fetch_one(&pool)
    .await?;
    println!("swept {rows} rows in {took:.1?}; {left} of the old ones are left");
    drop_tables(&pool).await?;
    Ok(())
}

/// Calls until the time is over, and longer if there is a sweep that has not ended.
async fn phase(
    engine: &Engine,
    name: &'static str,
    length: Duration,
    sweep: Option<&tokio::task::JoinHandle<Result<(u64, Duration), Error>>>,
) -> Result<(), BoxError> {
    let clock = SystemClock;
    let begun = clock.monotonic();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (engine, stopped) = (engine.clone(), stopped.clone());
        callers.spawn(async move {
            let clock = SystemClock;
            let mut took = Vec::new();
            for number in 0_u64.. {
                if *stopped.borrow() {
                    break;
                }
                for _ in 0..2 {
                    let before = clock.monotonic();
                    let answer: u64 = engine
                        .call("bench.charge", &(name, caller, number), TTL)
                        .run(async move { Ok::<_, Error>(number) })
                        .await?;
                    assert_eq!(answer, number);
                    took.push(clock.monotonic() - before);
                }
            }
            Ok::<_, Error>(took)
        });
    }
    tokio::time::sleep(length).await;
    while sweep.is_some_and(|sweep| !sweep.is_finished()) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stop.send(true)?;
    let mut all = Vec::new();
    while let Some(took) = callers.join_next().await {
        all.extend(took??);
    }
    let seconds = (clock.monotonic() - begun).as_secs_f64();
    all.sort_unstable();
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    println!(
        "{name:8} {:7} calls, none failed, {:5.0}/s  p50 {:>9.2?}  p99 {:>9.2?}  p99.9 {:>9.2?}  max {:>9.2?}",
        all.len(),
        all.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
    );
    Ok(())
}

/// Rows whose TTL ended an hour ago, as calls leave them.
async fn load(pool: &PgPool) -> Result<(), BoxError> {
    let sql = format!(
        "insert into {PREFIX}records (id, operation, payload_digest, payload_elements, state, fence, \
           attempt, claim, takeovers, doubt, started_us, finished_us, expires_us, codec, failed, \
           answer, answer_digest) \
         select sha256(i::text::bytea), 'old', sha256('p'), '', 2, i, 1, \
           decode(md5(i::text), 'hex'), 0, false, 1, 1, \
           (extract(epoch from now()) * 1000000)::bigint - 3600000000, 'json/1', false, \
           '{{\"Ok\":1}}', sha256('a') \
         from generate_series(1, {ROWS}) i"
    );
    query(AssertSqlSafe(sql)).execute(pool).await?;
    query(AssertSqlSafe(format!("vacuum analyze {PREFIX}records")))
        .execute(pool)
        .await?;
    Ok(())
}

async fn drop_tables(pool: &PgPool) -> Result<(), BoxError> {
    let names: Vec<String> = query_scalar(
        "select tablename from pg_tables where schemaname = 'public' and tablename like 'sweep\\_bench\\_%'",
    )
    .fetch_all(pool)
    .await?;
    for name in names {
        query(AssertSqlSafe(format!("drop table {name} cascade")))
            .execute(pool)
            .await?;
    }
    Ok(())
}
