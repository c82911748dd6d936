//! How the cost of a call grows with the number of records.
//!
//! **Shows** a replay and a first call by one caller on Postgres and on SQLite, at 1,000, 100,000 and
//! 1,000,000 finished records, which all can be replayed and are asked for at random; and the slope:
//! by how much a call is dearer for ten times the records.
//!
//! **Run** it, against a server with durable settings:
//!
//! ```text
//! eval "$(scripts/stores up --durable postgres)"
//! cargo bench --manifest-path benches/Cargo.toml --bench growth -- --records 1000,100000,1000000
//! scripts/stores down
//! ```
//!
//! Each number of records has tables of its own, and the rounds of all of them are interleaved. The
//! records are copies of one that a call left, under the ids of other keys: `--records 10000000` is
//! possible where there are some ten gigabytes.

use std::path::Path;
use std::time::Duration;

use harness::closed_loop::round;
use harness::figures::{Spread, number};
use harness::keys::text;
use harness::options::url;
use harness::ours::{ANSWER, OLD, OPERATION, Ours};
use harness::{BoxError, Case, Options, on_two_threads};
use idem::identity::Identity;
use idem::record::Recorded;
use idem::store::{PostgresStore, SqliteStore};
use idem::{Clock as _, SystemClock};
use serde_json::json;
use sqlx::postgres::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use sqlx::{AssertSqlSafe, query, query_scalar};

/// Records of one statement.
const BATCH: u64 = 5_000;

fn main() -> Result<(), BoxError> {
    let options = Options::of_command_line()?;
    on_two_threads(measure(options))
}

async fn measure(options: Options) -> Result<(), BoxError> {
    let levels = match (&options.records[..], options.quick) {
        ([], false) => vec![1_000, 100_000, 1_000_000],
        ([], true) => vec![1_000, 10_000],
        (levels, _) => levels.to_vec(),
    };
    let folder = std::env::temp_dir().join(format!("idem-growth-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let measured = stores(&options, &levels, &folder).await;
    std::fs::remove_dir_all(&folder)?;
    measured
}

async fn stores(options: &Options, levels: &[u64], folder: &Path) -> Result<(), BoxError> {
    if options.wants("sqlite") {
        let mut engines = Vec::new();
        for &records in levels {
            engines.push(sqlite(&folder.join(format!("{records}.db")), records).await?);
        }
        compare(options, "sqlite", levels, &engines).await?;
    }
    if options.wants("postgres") {
        let url = url("postgres")?;
        let mut engines = Vec::new();
        for &records in levels {
            engines.push(postgres(&url, records).await?);
        }
        compare(options, "postgres", levels, &engines).await?;
    }
    Ok(())
}

async fn compare(
    options: &Options,
    store: &str,
    levels: &[u64],
    engines: &[Ours],
) -> Result<(), BoxError> {
    let decades = (levels[levels.len() - 1] as f64 / levels[0] as f64).log10();
    for case in [Case::Replay, Case::First] {
        let mut times = vec![Vec::new(); levels.len()];
        // One round of each goes before, and is not counted.
        for number in 0..=options.rounds {
            for turn in 0..engines.len() {
                let level = (number + turn) % engines.len();
                let done = round(&engines[level], case, 1, options.slice).await?;
                if number > 0 {
                    times[level].push(done.p50);
                }
            }
        }
        for (records, times) in levels.iter().zip(&times) {
            let time = Spread::of(times.iter().copied());
            println!(
                "{store:<9} {:<7} {:>11} records  {:>9} us a call ({} to {})",
                case.name(),
                number(*records as f64),
                number(time.median),
                number(time.min),
                number(time.max)
            );
            options.note(&json!({
                "bench": "growth", "store": store, "case": case.name(), "records": records,
                "us": time.median, "us_min": time.min, "us_max": time.max, "rounds": times.len(),
            }))?;
        }
        let ratios = times[0].iter().zip(&times[levels.len() - 1]);
        let slope = Spread::of(ratios.map(|(few, many)| (many / few).powf(1.0 / decades)));
        println!(
            "{store:<9} {:<7} for ten times the records {slope} x the time",
            case.name()
        );
        options.note(&json!({
            "bench": "slope", "store": store, "case": case.name(), "ratio": slope.median,
            "ratio_min": slope.min, "ratio_max": slope.max, "decades": decades,
        }))?;
    }
    Ok(())
}

/// Ids of the keys from `from` on, with what of their rows depends on the id.
struct Rows {
    ids: Vec<Vec<u8>>,
    payloads: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
}

impl Rows {
    fn new(from: u64, to: u64) -> Result<Self, BoxError> {
        let identity = Identity::new(None, "bench");
        let answer = format!(
            r#"{{"Ok":"{}"}}"#,
            "x".repeat(ANSWER - r#"{"Ok":""}"#.len())
        );
        let mut rows = Self {
            ids: Vec::new(),
            payloads: Vec::new(),
            answers: Vec::new(),
        };
        for n in from..to {
            let key = serde_json::to_vec(&text(OLD, n))?;
            let id = identity.record_id(OPERATION, None, &key);
            let answer = Recorded::digest_of(&id, "json/1", answer.as_bytes());
            rows.ids.push(id.as_bytes().to_vec());
            rows.payloads
                .push(identity.fingerprint(&id, &[]).as_bytes().to_vec());
            rows.answers.push(answer.to_vec());
        }
        Ok(rows)
    }
}

/// The columns of a table, and the same of the row `t`, but for those that depend on the id.
fn columns(names: &[String]) -> (String, String) {
    let of = |name: &String| match name.as_str() {
        "id" => "new.id".to_owned(),
        "payload_digest" => "new.payload".to_owned(),
        "answer_digest" => "new.answer".to_owned(),
        other => format!("t.{other}"),
    };
    let values: Vec<_> = names.iter().map(of).collect();
    (names.join(", "), values.join(", "))
}

async fn postgres(url: &str, records: u64) -> Result<Ours, BoxError> {
    let begun = SystemClock.monotonic();
    let prefix = format!("growth{}_{records}_", std::process::id());
    let store = PostgresStore::options()
        .prefix(&prefix)
        .connections(4)
        .connect(url)
        .await?;
    store.migrate().await?;
    // The template, and the engine's own check that what is loaded is replayed.
    let ours = Ours::new(store, 1).await?;
    let pool = PgPool::connect(url).await?;
    let names: Vec<String> = query_scalar(
        "select column_name::text from information_schema.columns where table_name = $1
         order by ordinal_position",
    )
    .bind(format!("{prefix}records"))
    .fetch_all(&pool)
    .await?;
    let (into, values) = columns(&names);
    let sql = format!(
        "insert into {prefix}records ({into}) select {values}
         from unnest($1::bytea[], $2::bytea[], $3::bytea[]) as new (id, payload, answer)
         cross join (select * from {prefix}records where id = $4) t"
    );
    let template = Rows::new(0, 1)?.ids.remove(0);
    let mut from = 1;
    while from < records {
        let to = (from + BATCH).min(records);
        let rows = Rows::new(from, to)?;
        query(AssertSqlSafe(sql.as_str()))
            .bind(&rows.ids)
            .bind(&rows.payloads)
            .bind(&rows.answers)
            .bind(&template)
            .execute(&pool)
            .await?;
        from = to;
    }
    query(AssertSqlSafe(format!("vacuum analyze {prefix}records")))
        .execute(&pool)
        .await?;
    query("checkpoint").execute(&pool).await?;
    pool.close().await;
    loaded("postgres", records, SystemClock.monotonic() - begun);
    ours.with_recorded(records).await
}

async fn sqlite(path: &Path, records: u64) -> Result<Ours, BoxError> {
    let begun = SystemClock.monotonic();
    let ours = Ours::new(SqliteStore::open(path).await?, 1).await?;
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(path)).await?;
    let names: Vec<String> = query_scalar("select name from pragma_table_info('idem_records')")
        .fetch_all(&pool)
        .await?;
    let (into, values) = columns(&names);
    let template = Rows::new(0, 1)?.ids.remove(0);
    let mut from = 1;
    // Few enough for SQLite's limit of parameters.
    const PIECE: usize = 250;
    while from < records {
        let to = (from + BATCH * 4).min(records);
        let rows = Rows::new(from, to)?;
        let mut tx = pool.begin().await?;
        for at in (0..rows.ids.len()).step_by(PIECE) {
            let end = (at + PIECE).min(rows.ids.len());
            let sql = format!(
                "with new (id, payload, answer) as (values {}) insert into idem_records ({into})
                 select {values} from new cross join (select * from idem_records where id = ?) t",
                vec!["(?, ?, ?)"; end - at].join(", ")
            );
            let mut insert = query(AssertSqlSafe(sql));
            for row in at..end {
                insert = insert
                    .bind(&rows.ids[row])
                    .bind(&rows.payloads[row])
                    .bind(&rows.answers[row]);
            }
            insert.bind(&template).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        from = to;
    }
    query("pragma wal_checkpoint(truncate)")
        .execute(&pool)
        .await?;
    pool.close().await;
    loaded("sqlite", records, SystemClock.monotonic() - begun);
    ours.with_recorded(records).await
}

fn loaded(store: &str, records: u64, took: Duration) {
    println!(
        "{store:<9} {} records loaded in {took:.1?}",
        number(records as f64)
    );
}
