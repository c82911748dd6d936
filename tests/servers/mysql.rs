//! The store in `MariaDB`, with its own statements and with those of `MySQL` 8.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::sqlx::mysql::{MySqlPool, MySqlPoolOptions};
use idem::store::mysql::Dialect;
use idem::store::{Finding, MySqlStore, Store};
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};
use idem::{Engine, Error, StoreError, StoreErrorKind};
use tokio::sync::Barrier;

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
    let harness = MySql {
        pool: pool().await,
        prefix: prefix(),
        dialect,
    };
    println!("{dialect:?}: {}", conformance::run_all(harness).await);
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
