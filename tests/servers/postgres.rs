//! The store in Postgres.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::record::Standing;
use idem::sqlx::postgres::{PgPool, PgPoolOptions};
use idem::sqlx::{AssertSqlSafe, raw_sql};
use idem::store::{Finding, PostgresStore, Reserved, Store, StoreAdmin as _, Written};
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};
use idem::{Engine, Error, StoreError, StoreErrorKind};
use tokio::sync::Barrier;

use crate::operators::{not_done, rerun, scan, shows_an_attempt_without_a_lease_as_unknown};

fn url() -> String {
    crate::url("IDEM_TEST_POSTGRES_URL")
}

/// A place no other test uses.
fn prefix() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("t{}_{next}_", std::process::id())
}

async fn pool() -> PgPool {
    PgPoolOptions::new()
        .max_connections(20)
        .test_before_acquire(false)
        .connect(&url())
        .await
        .unwrap()
}

/// Every place of the suite is a prefix of its own.
struct Postgres {
    pool: PgPool,
    prefix: String,
}

impl Harness for Postgres {
    async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
        // Names are long; a digest of them is not.
        let short = place.bytes().fold(0_u64, |hash, byte| {
            hash.wrapping_mul(1_099_511_628_211) ^ u64::from(byte)
        });
        let store = PostgresStore::options()
            .prefix(format!("{}{short:x}_", self.prefix))
            .clock(clock)
            .from_pool(self.pool.clone())?;
        store.migrate().await?;
        Ok(Arc::new(store))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_keeps_the_contract() {
    println!("{}", conformance::run_all(harness().await).await);
}

pub(crate) async fn harness() -> impl Harness {
    Postgres {
        pool: pool().await,
        prefix: prefix(),
    }
}

async fn migrated(prefix: &str) -> PostgresStore {
    let store = PostgresStore::options()
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
                let store = PostgresStore::options()
                    .prefix(prefix)
                    .connect(&url())
                    .await?;
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
    let store = PostgresStore::options()
        .prefix(prefix())
        .connect(&url())
        .await;
    let store = store.unwrap();
    assert_eq!(store.check().await.unwrap(), [Finding::NoSchema]);
    let Err(Error::Store(error)) = Engine::builder(store).build().await else {
        panic!("it started without a schema");
    };
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("migrate()"), "{error}");
}

#[tokio::test]
async fn the_printed_schema_is_the_one_that_migrate_makes() {
    let schema = format!("s{}", prefix());
    let options = || PostgresStore::options().schema(schema.trim_end_matches('_'));
    let store = options().connect(&url()).await.unwrap();
    raw_sql(AssertSqlSafe(store.schema_sql()))
        .execute(&pool().await)
        .await
        .unwrap();
    store.migrate().await.unwrap();
    assert_eq!(store.check().await.unwrap(), []);
    Engine::builder(store).build().await.unwrap();
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
            PostgresStore::options().schema(name),
            PostgresStore::options().prefix(name),
        ] {
            let error = options.from_pool(pool.clone()).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{name:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_flushes_nothing_is_found() {
    let prefix = prefix();
    migrated(&prefix).await;
    let options = "-c synchronous_commit=off".replace(' ', "%20");
    let url = format!("{}?options={options}", url());
    let store = PostgresStore::options().prefix(prefix).connect(&url).await;
    assert_eq!(store.unwrap().check().await.unwrap(), [Finding::NotDurable]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_one_serves_twenty_keys_with_slow_bodies_and_waiting_callers() {
    let prefix = prefix();
    migrated(&prefix).await;
    let store = PostgresStore::options().prefix(prefix).connections(1);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_above_read_committed_lose_nothing() {
    let prefix = prefix();
    migrated(&prefix).await;
    let options = "-c default_transaction_isolation=serializable".replace(' ', "%20");
    let url = format!("{}?options={options}", url());
    let runs = Arc::new(AtomicUsize::new(0));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = PostgresStore::options().prefix(prefix.as_str());
        let engine = Engine::builder(store.connect(&url).await.unwrap())
            .build()
            .await
            .unwrap();
        for key in 0..20_usize {
            let (engine, runs) = (engine.clone(), Arc::clone(&runs));
            calls.spawn(async move {
                let call = engine.call("isolation", &key, Duration::from_secs(60));
                call.run(async move {
                    runs.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, Error>(key)
                })
                .await
            });
        }
    }
    let answers = calls.join_all().await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 20);
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
    let records = include_str!("../../idem-runtime/migrations/postgres/0001_records.sql");
    execute(&prefix, records).await;
    let options = PostgresStore::options().prefix(prefix.as_str());
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
            let store = PostgresStore::options()
                .prefix(prefix)
                .connect(&url())
                .await?;
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
