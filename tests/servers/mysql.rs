//! The store in `MariaDB`, with its own statements and with those of `MySQL` 8.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Element, Label, Record, Recorded, Standing, State, VersionBytes};
use idem::sqlx::mysql::{MySqlPool, MySqlPoolOptions};
use idem::sqlx::{AssertSqlSafe, raw_sql};
use idem::store::mysql::Dialect;
use idem::store::{Finding, MySqlStore, Reserved, Store, StoreAdmin as _, Written};
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};
use idem::{Engine, Error, StoreError, StoreErrorKind};
use tokio::sync::Barrier;

use crate::operators::{
    not_done, rerun, scan, shows_an_attempt_without_a_lease_as_unknown, standing,
};

fn url() -> String {
    crate::url("IDEM_TEST_MYSQL_URL")
}

/// A place no other test uses.
fn prefix() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("t{}_{next}_", std::process::id())
}

async fn pool() -> MySqlPool {
    MySqlPoolOptions::new()
        .max_connections(20)
        .test_before_acquire(false)
        .connect(&url())
        .await
        .unwrap()
}

/// Every place of the suite is a prefix of its own.
struct MySql {
    pool: MySqlPool,
    prefix: String,
    dialect: Dialect,
}

impl Harness for MySql {
    async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
        // Names are long; a digest of them is not.
        let short = place.bytes().fold(0_u64, |hash, byte| {
            hash.wrapping_mul(1_099_511_628_211) ^ u64::from(byte)
        });
        let store = MySqlStore::options()
            .prefix(format!("{}{short:x}_", self.prefix))
            .clock(clock)
            .dialect(self.dialect)
            .from_pool(self.pool.clone())
            .await?;
        store.migrate().await?;
        Ok(Arc::new(store))
    }
}

async fn keeps_the_contract(dialect: Dialect) {
    let report = conformance::run_all(harness(dialect).await).await;
    println!("{dialect:?}: {report}");
}

pub(crate) async fn harness(dialect: Dialect) -> impl Harness {
    MySql {
        pool: pool().await,
        prefix: prefix(),
        dialect,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mariadb_keeps_the_contract() {
    keeps_the_contract(Dialect::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_statements_of_mysql_keep_the_contract_on_mariadb() {
    keeps_the_contract(Dialect::MySql).await;
}

async fn migrated(prefix: &str) -> MySqlStore {
    let store = MySqlStore::options()
        .prefix(prefix)
        .connect(&url())
        .await
        .unwrap();
    store.migrate().await.unwrap();
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_at_once_create_the_schema_harmlessly_and_again() {
    let prefix = prefix();
    let barrier = Arc::new(Barrier::new(8));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (prefix, barrier) = (prefix.clone(), Arc::clone(&barrier));
            tokio::spawn(async move {
                let store = MySqlStore::options().prefix(prefix).connect(&url()).await?;
                barrier.wait().await;
                store.migrate().await?;
                store.migrate().await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(migrated(&prefix).await.check().await.unwrap(), []);
}

#[tokio::test]
async fn a_missing_schema_does_not_start_and_names_migrate() {
    let store = MySqlStore::options().prefix(prefix()).connect(&url()).await;
    let store = store.unwrap();
    assert_eq!(store.check().await.unwrap(), [Finding::NoSchema]);
    let Err(Error::Store(error)) = Engine::builder(store).build().await else {
        panic!("it started without a schema");
    };
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("migrate()"), "{error}");
}

#[tokio::test]
async fn names_that_are_no_names_are_refused() {
    let pool = pool().await;
    let long = "x".repeat(64);
    for name in [
        "",
        "a b",
        "a\"b",
        "a.b",
        "a--",
        "1a",
        "a\0",
        "größe",
        long.as_str(),
    ] {
        for options in [
            MySqlStore::options().database(name),
            MySqlStore::options().prefix(name),
        ] {
            let error = options.from_pool(pool.clone()).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{name:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_one_serves_twenty_keys_with_slow_bodies_and_waiting_callers() {
    let prefix = prefix();
    migrated(&prefix).await;
    let store = MySqlStore::options().prefix(prefix).connections(1);
    let engine = Engine::builder(store.connect(&url()).await.unwrap())
        .build()
        .await
        .unwrap();
    // No body ends before all have begun: each would hold the one connection.
    let all = Arc::new(Barrier::new(20));
    let mut calls = tokio::task::JoinSet::new();
    for caller in 0..40_usize {
        let (engine, all) = (engine.clone(), Arc::clone(&all));
        calls.spawn(async move {
            let key = caller % 20;
            let call = engine.call("pool.slow", &key, Duration::from_secs(60));
            call.run(async move {
                all.wait().await;
                Ok::<_, Error>(key)
            })
            .await
        });
    }
    let answers = calls.join_all().await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

#[tokio::test]
async fn a_url_makes_an_engine_with_its_schema() {
    idem::connect(&url()).await.unwrap();
    idem::connect(&url()).await.unwrap();
}

/// Runs SQL of which `{…}` are the tables' names.
async fn execute(prefix: &str, sql: &str) {
    let sql = sql.replace('{', prefix).replace('}', "");
    raw_sql(AssertSqlSafe(sql))
        .execute(&pool().await)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_schema_of_version_1_is_upgraded_by_eight_at_once_and_keeps_its_records() {
    let prefix = prefix();
    execute(
        &prefix,
        "create table {schema} (version int not null primary key, applied_us bigint not null);
         insert into {schema} values (1, 0)",
    )
    .await;
    let records = include_str!("../../idem-runtime/migrations/mysql/0001_records.sql");
    execute(&prefix, records).await;
    let options = MySqlStore::options().prefix(prefix.as_str());
    let store = options.connect(&url()).await.unwrap();
    let won = store.reserve(&rerun(1)).await.unwrap();
    assert!(matches!(won, Reserved::Won(_)));
    let before = store.get(&rerun(1).id).await.unwrap().unwrap().record;
    assert_eq!(
        store.check().await.unwrap(),
        [Finding::NoSchema],
        "it is old"
    );

    let start = Arc::new(Barrier::new(8));
    let mut upgrades = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (prefix, start) = (prefix.clone(), Arc::clone(&start));
        upgrades.spawn(async move {
            let store = MySqlStore::options().prefix(prefix).connect(&url()).await?;
            start.wait().await;
            store.migrate().await
        });
    }
    assert_eq!(upgrades.join_all().await, vec![Ok(()); 8]);
    assert_eq!(store.check().await.unwrap(), []);
    let after = store.scan(&scan(Standing::InProgress)).await.unwrap();
    assert_eq!(after.records, [before]);
    let written = store.settle(&not_done(&store).await).await.unwrap();
    assert_eq!(written, Written::Done);
    assert_eq!(store.audit(&rerun(1).id).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_change_that_cannot_be_audited_is_not_made() {
    let prefix = prefix();
    let store = migrated(&prefix).await;
    store.reserve(&rerun(1)).await.unwrap();
    let before = store.get(&rerun(1).id).await.unwrap().unwrap().record;
    let request = not_done(&store).await;
    execute(
        &prefix,
        "alter table {audit} add constraint full_disk check (became > 9)",
    )
    .await;
    assert!(store.settle(&request).await.is_err());
    let after = store.get(&rerun(1).id).await.unwrap().unwrap().record;
    assert_eq!(after, before);
    execute(&prefix, "alter table {audit} drop constraint full_disk").await;
    assert_eq!(store.settle(&request).await.unwrap(), Written::Done);
}

#[tokio::test]
async fn an_attempt_without_a_lease_is_shown_as_unknown_and_settled() {
    let prefix = prefix();
    let store = migrated(&prefix).await;
    let unlease = execute(&prefix, "update {records} set lease_until_us = null");
    shows_an_attempt_without_a_lease_as_unknown(&store, unlease).await;
}

async fn indexes(prefix: &str) -> Vec<String> {
    let sql = "select distinct index_name from information_schema.statistics
        where table_schema = database() and table_name = ? order by index_name";
    idem::sqlx::query_scalar(sql)
        .bind(format!("{prefix}records"))
        .fetch_all(&pool().await)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_upgrade_that_was_cut_off_is_finished() {
    let prefix = prefix();
    let store = migrated(&prefix).await;
    assert_eq!(indexes(&prefix).await, ["open", "PRIMARY"]);
    store.reserve(&rerun(1)).await.unwrap();
    // As if the server had stopped after the first of its statements.
    execute(
        &prefix,
        "drop table {steps}; drop table {audit}; delete from {schema} where version > 1",
    )
    .await;
    assert_eq!(store.check().await.unwrap(), [Finding::NoSchema]);
    store.migrate().await.unwrap();
    assert_eq!(store.check().await.unwrap(), []);
    assert_eq!(indexes(&prefix).await, ["open", "PRIMARY"]);
    assert_eq!(standing(&store, Standing::InProgress).await, 1);
}

#[tokio::test]
async fn the_printed_schema_is_the_one_that_migrate_makes_and_may_be_run_twice() {
    let prefix = prefix();
    let options = MySqlStore::options()
        .prefix(prefix.as_str())
        .database("idem");
    let store = options.connect(&url()).await.unwrap();
    for _ in 0..2 {
        raw_sql(AssertSqlSafe(store.schema_sql()))
            .execute(&pool().await)
            .await
            .unwrap();
    }
    assert_eq!(indexes(&prefix).await, ["open", "PRIMARY"]);
    store.migrate().await.unwrap();
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn settling_that_is_dropped_half_way_changes_nothing() {
    let prefix = prefix();
    let store = migrated(&prefix).await;
    store.reserve(&rerun(1)).await.unwrap();
    let request = not_done(&store).await;
    // Until here and no further: the entry cannot be written.
    let pool = pool().await;
    let mut holder = pool.begin().await.unwrap();
    let lock = format!("select * from {prefix}audit for update");
    raw_sql(AssertSqlSafe(lock))
        .execute(&mut *holder)
        .await
        .unwrap();
    let settling = tokio::spawn({
        let (store, request) = (store.clone(), request.clone());
        async move { store.settle(&request).await }
    });
    let waits = format!(
        "select count(*) from information_schema.processlist
         where command = 'Execute' and info like 'insert into `{prefix}audit`%'"
    );
    loop {
        let count: i64 = idem::sqlx::query_scalar(AssertSqlSafe(waits.as_str()))
            .fetch_one(&pool)
            .await
            .unwrap();
        if count > 0 {
            break;
        }
        assert!(!settling.is_finished(), "it did not wait");
        tokio::task::yield_now().await;
    }
    settling.abort();
    assert!(settling.await.unwrap_err().is_cancelled());
    holder.rollback().await.unwrap();
    // As of the same fence: it is still there.
    assert_eq!(store.settle(&request).await.unwrap(), Written::Done);
    assert_eq!(store.audit(&request.id).await.unwrap().len(), 1);
}

/// A row that was written by hand.
async fn read_back(prefix: &str, set: &str) -> Record {
    let update = format!("update {prefix}records set {set}");
    let pool = pool().await;
    let done = raw_sql(AssertSqlSafe(update)).execute(&pool).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
    let seen = migrated(prefix).await.get(&rerun(1).id).await.unwrap();
    seen.unwrap().record
}

/// A record of which only these are set: fence, lease and start.
async fn reserved(prefix: &str) -> Record {
    migrated(prefix).await.reserve(&rerun(1)).await.unwrap();
    let fresh = idem::transition::reserve(None, &rerun(1), 0).write;
    Record {
        fence: 3,
        lease_until_us: Some(4),
        started_us: 5,
        ..fresh.unwrap()
    }
}

#[tokio::test]
async fn nothing_is_told_from_empty() {
    let prefix = prefix();
    let nothing = reserved(&prefix).await;
    let set = "fence = 3, lease_until_us = 4, started_us = 5";
    assert_eq!(read_back(&prefix, set).await, nothing);

    let empty = read_back(
        &prefix,
        "operation = '', label = '', codec = '', failed = 0, answer = '', answer_digest = '', \
         version_applied = '', version_recorded = '', version_running = '', state = 2",
    );
    let version = VersionBytes::new(Vec::new());
    let answer = Recorded {
        codec: String::new(),
        failed: false,
        bytes: Vec::new(),
        digest: [0; 32],
    };
    let expected = Record {
        operation: String::new(),
        label: Some(Label::new("")),
        state: State::Completed,
        answer: Some(answer),
        version_applied: version.clone(),
        version_recorded: version.clone(),
        version_running: version,
        ..nothing
    };
    assert_eq!(empty.await, expected);
}

#[tokio::test]
async fn extremes_are_read_as_they_are() {
    let prefix = prefix();
    let nothing = reserved(&prefix).await;
    let extreme = read_back(
        &prefix,
        "operation = ',;\u{e4},\u{1f600};1', label = ';', scope_digest = repeat(x'00', 32), \
         payload_digest = repeat(x'2c', 32), payload_elements = x'000161ffffffffffffffff', \
         fence = 9223372036854775807, attempt = 2147483647, claim = repeat(x'3b', 16), \
         takeovers = -2147483648, doubt = 1, lease_until_us = -9223372036854775808, \
         started_us = -1, finished_us = 0, expires_us = 9223372036854775807, since_us = -2, \
         not_before_us = 1, reason = -32768, codec = ',', failed = 1, answer = x'00ff3b2c', \
         answer_digest = repeat(x'ff', 32), version_applied = repeat(x'00', 32), \
         version_recorded = x'ff', version_running = null, \
         recorded_payload_digest = repeat(x'3b', 32), parent = repeat(x'0a', 32)",
    );
    let expected = Record {
        operation: ",;\u{e4},\u{1f600};1".to_owned(),
        label: Some(Label::new(";")),
        scope: Some([0; 32]),
        fingerprint: Fingerprint::from_bytes([0x2c; 32]),
        elements: vec![Element {
            label: "a".to_owned(),
            digest: [0xff; 8],
        }],
        fence: i64::MAX,
        attempt: i32::MAX,
        claim: Claim::from_bytes([0x3b; 16]),
        takeovers: i32::MIN,
        doubt: true,
        lease_until_us: Some(i64::MIN),
        started_us: -1,
        finished_us: Some(0),
        expires_us: Some(i64::MAX),
        since_us: Some(-2),
        not_before_us: Some(1),
        reason: Some(i16::MIN),
        answer: Some(Recorded {
            codec: ",".to_owned(),
            failed: true,
            bytes: vec![0, 0xff, b';', b','],
            digest: [0xff; 32],
        }),
        version_applied: VersionBytes::new(vec![0; 32]),
        version_recorded: VersionBytes::new(vec![0xff]),
        recorded_fingerprint: Some(Fingerprint::from_bytes([0x3b; 32])),
        parent: Some(RecordId::from_bytes([0x0a; 32])),
        ..nothing
    };
    assert_eq!(extreme.await, expected);
}
