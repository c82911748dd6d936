//! A row that was damaged under the store: the right answer, a typed error or
//! "not replayable", and never a run, a panic or another record's answer.

use std::path::PathBuf;
use std::time::Duration;

use idem::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use idem::sqlx::{self, Connection as _, Executor as _};
use idem::store::SqliteStore;
use idem::testing::ManualClock;
use idem::{Engine, Error, Ttl};

/// Columns of a finished row, without its key.
const COLUMNS: &[&str] = &[
    "operation",
    "label",
    "scope_digest",
    "payload_digest",
    "payload_elements",
    "state",
    "fence",
    "attempt",
    "claim",
    "takeovers",
    "doubt",
    "lease_until_us",
    "started_us",
    "finished_us",
    "expires_us",
    "since_us",
    "not_before_us",
    "reason",
    "codec",
    "failed",
    "answer",
    "answer_digest",
    "version_applied",
    "version_recorded",
    "version_running",
    "recorded_payload_digest",
    "parent",
];

struct Bench {
    engine: Engine,
    raw: SqliteConnection,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join("damaged.db");
        let options = SqliteStore::options(&path).clock(ManualClock::new());
        let builder = Engine::builder(options.open().await.unwrap()).namespace("damage");
        let engine = builder.build().await.unwrap();
        let options = SqliteConnectOptions::new().filename(&path);
        let mut raw = SqliteConnection::connect_with(&options).await.unwrap();
        // The checks of the schema are one more guard, and not the one tested.
        raw.execute("PRAGMA ignore_check_constraints = 1")
            .await
            .unwrap();
        let bench = Self {
            engine,
            raw,
            _folder: folder,
        };
        for order in ["1", "2"] {
            assert_eq!(bench.call(order, true).await, Ok(format!("of {order}")));
        }
        bench
    }

    async fn call(&self, order: &str, may_run: bool) -> Result<String, Error> {
        let answer = format!("of {order}");
        self.engine
            .call("damage.charge", order, Ttl::For(Duration::from_secs(3_600)))
            .payload(&(4_200_u32, "EUR"))
            .label("order")
            .scope("tenant")
            .run(async move {
                assert!(may_run, "a body ran on a damaged row");
                Ok(answer)
            })
            .await
    }

    /// Calls on a damaged row, which must give what was recorded, or an error of
    /// the engine.
    async fn holds(&self, order: &str, damage: &str) {
        match self.call(order, false).await {
            Ok(answer) => assert_eq!(answer, format!("of {order}"), "{damage}"),
            Err(
                Error::NotReplayable { .. }
                | Error::Store(_)
                | Error::PayloadMismatch { .. }
                | Error::UnknownOutcome { .. }
                | Error::InProgress { .. },
            ) => {}
            Err(other) => panic!("{damage}: {other}"),
        }
    }

    async fn execute(&mut self, sql: &str) -> Result<u64, sqlx::Error> {
        let done = sqlx::query(sqlx::AssertSqlSafe(sql))
            .execute(&mut self.raw)
            .await?;
        Ok(done.rows_affected())
    }

    async fn keep(&mut self) {
        self.execute("CREATE TABLE kept AS SELECT * FROM idem_records")
            .await
            .unwrap();
    }

    async fn restore(&mut self) {
        self.execute("DELETE FROM idem_records").await.unwrap();
        self.execute("INSERT INTO idem_records SELECT * FROM kept")
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_is_missing_cut_or_of_another_type_is_never_run_over() {
    let mut bench = Bench::new().await;
    bench.keep().await;
    let mut written = 0;
    for column in COLUMNS {
        for value in [
            "NULL".to_owned(),
            "x''".to_owned(),
            "''".to_owned(),
            "'text'".to_owned(),
            "zeroblob(1)".to_owned(),
            "zeroblob(32)".to_owned(),
            "-1".to_owned(),
            "1.5".to_owned(),
            "9223372036854775807".to_owned(),
            format!("substr({column}, 1, length({column}) - 1)"),
            format!("CAST({column} AS BLOB) || x'00'"),
        ] {
            // Released and expired rows are the next caller's to run, so such a
            // state or time is no damage that a store could see.
            let says_run = (*column == "state" && value == "1") || *column == "expires_us";
            let sql = format!("UPDATE idem_records SET {column} = {value}");
            if says_run || bench.execute(&sql).await.is_err() {
                // A column that must not be null.
                continue;
            }
            written += 1;
            bench.holds("1", &sql).await;
            bench.restore().await;
        }
    }
    assert!(written > 200, "only {written} were written");
    assert_eq!(bench.call("1", false).await, Ok("of 1".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_never_replayed_as_something_else() {
    let mut bench = Bench::new().await;
    bench.keep().await;
    for column in [
        "answer",
        "answer_digest",
        "codec",
        "payload_digest",
        "claim",
        "operation",
    ] {
        let sql = format!("SELECT CAST({column} AS BLOB) FROM kept LIMIT 1");
        let bytes: Vec<u8> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut bench.raw)
            .await
            .unwrap();
        let text = matches!(column, "codec" | "operation");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let cast = if text { "CAST(?1 AS TEXT)" } else { "?1" };
            let sql = format!("UPDATE idem_records SET {column} = {cast}");
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(flipped)
                .execute(&mut bench.raw)
                .await
                .unwrap();
            bench.holds("1", &format!("bit {bit} of {column}")).await;
            if matches!(column, "answer" | "answer_digest" | "codec") {
                let error = bench.call("1", false).await.unwrap_err();
                let refused = matches!(error, Error::NotReplayable { .. } | Error::Store(_));
                assert!(refused, "bit {bit} of {column}: {error}");
            }
        }
        bench.restore().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_of_a_number_runs_nothing() {
    let mut bench = Bench::new().await;
    bench.keep().await;
    for column in [
        "fence",
        "attempt",
        "takeovers",
        "started_us",
        "finished_us",
        "failed",
        "doubt",
    ] {
        for bit in 0..63 {
            let sql = format!(
                "UPDATE idem_records SET {column} = ({column} | (1 << {bit})) - ({column} & (1 << {bit}))"
            );
            bench.execute(&sql).await.unwrap();
            bench.holds("1", &sql).await;
        }
        bench.restore().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_were_swapped_are_never_replayed() {
    let mut bench = Bench::new().await;
    bench.keep().await;
    for (to, from) in [(1, 2), (2, 1)] {
        let columns = COLUMNS.join(", ");
        let sql = format!(
            "UPDATE idem_records SET ({columns}) = (SELECT {columns} FROM kept WHERE rowid = {from}) WHERE id = (SELECT id FROM kept WHERE rowid = {to})"
        );
        assert_eq!(bench.execute(&sql).await.unwrap(), 1);
    }
    for order in ["1", "2"] {
        let error = bench.call(order, false).await.unwrap_err();
        let refused = matches!(
            error,
            Error::NotReplayable { .. } | Error::PayloadMismatch { .. }
        );
        assert!(refused, "{order}: {error}");
    }
}
