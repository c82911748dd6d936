//! A store of your own: records in a file of redb, an embedded key-value store.
//!
//! ```sh
//! cargo run --example custom_store --features custom-store
//! ```
//!
//! It makes a call twice on that store, of which one runs, and then has the
//! conformance suite look for what the store does wrong. It prints
//!
//! ```text
//! first call:  receipt 1
//! second call: receipt 1
//! the body ran 1 time
//! redb: … cases
//! ```
//!
//! Read [`store`] first, then [`row`]; `docs/custom-store.md` is the guide.
//! `cargo test --example custom_store --features custom-store` is the suite as
//! a test.

mod row;
mod store;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use idem::store::Store;
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};
use idem::{Engine, StoreError, SystemClock, idempotent};

use self::store::RedbStore;

static RUNS: AtomicU32 = AtomicU32::new(0);

#[idempotent(name = "shop.charge", key = order, payload = amount, ttl = "24h", engine = engine)]
async fn charge(engine: Engine, order: u32, amount: u64) -> Result<String, idem::Error> {
    let run = RUNS.fetch_add(1, Ordering::SeqCst) + 1;
    Ok(format!("receipt {run}"))
}

/// Opens a file for each place that the suite asks for.
struct Files(PathBuf);

impl Harness for Files {
    async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(RedbStore::open(self.0.join(place), clock)?))
    }
}

// Several threads, so that the cases that race do race.
#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = RedbStore::open(folder.path().join("shop.redb"), SystemClock)?;
    let engine = Engine::builder(store).namespace("shop").build().await?;
    println!("first call:  {}", charge(engine.clone(), 7, 4_200).await?);
    println!("second call: {}", charge(engine.clone(), 7, 4_200).await?);
    println!("the body ran {} time", RUNS.load(Ordering::SeqCst));

    let suite = tempfile::tempdir()?;
    let report = conformance::run_all(Files(suite.path().to_owned())).await;
    println!("{report}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn every_case_runs_but_those_it_says_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let lacks = RedbStore::open(folder.path().join("lacks"), SystemClock)
            .unwrap()
            .lacks();
        let report = conformance::run_all(Files(folder.path().to_owned())).await;
        println!("{report}");
        let all = conformance::cases().count();
        assert_eq!(report.executed.len() + report.not_run.len(), all);
        for case in &report.not_run {
            assert!(case.needs.iter().any(|need| lacks.contains(need)), "{case}");
        }
        let runs = |topic| report.executed.iter().any(|case| case.topic == topic);
        assert!(runs("reserve") && runs("sweep") && runs("race") && runs("version"));
    }

    #[tokio::test]
    async fn a_file_opened_again_has_the_same_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.redb");
        let mut receipts = Vec::new();
        for _ in 0..2 {
            let store = RedbStore::open(&path, SystemClock).unwrap();
            let engine = Engine::builder(store).build().await.unwrap();
            receipts.push(charge(engine, 8, 1).await.unwrap());
        }
        assert_eq!(receipts[0], receipts[1]);
    }
}
