//! The conformance suite.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem::StoreError;
use idem::store::tiered::MemoryFront;
use idem::store::{MemoryStore, SqliteStore, Store, TieredStore};
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};

use super::{HINT, meta};

/// Puts a front before a store, which is one of memory without a folder.
#[derive(Default)]
struct Tiered {
    places: Mutex<HashMap<String, (MemoryFront, MemoryStore)>>,
    folder: Option<tempfile::TempDir>,
    hint: Duration,
}

impl Harness for Tiered {
    async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
        let (front, memory) = {
            let mut places = self.places.lock().unwrap();
            let new = || {
                let front = MemoryFront::with(MemoryFront::MOST_BYTES, clock.clone());
                (front, MemoryStore::with_clock(clock.clone()))
            };
            places.entry(place.to_owned()).or_insert_with(new).clone()
        };
        let options = match &self.folder {
            None => TieredStore::options(front, memory),
            Some(folder) => {
                let options = SqliteStore::options(folder.path().join(place));
                TieredStore::options(front, options.clock(clock.clone()).open().await?)
            }
        };
        let store = options.hint(self.hint).clock(clock).build();
        // As an engine does, without which the front is not used; but not
        // before those who test just that.
        if !place.starts_with("meta_") {
            store.pin(&meta(1)).await?;
        }
        Ok(Arc::new(store))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tiered_over_memory_keeps_the_contract() {
    println!("{}", conformance::run_all(Tiered::default()).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tiered_over_sqlite_keeps_the_contract() {
    let harness = Tiered {
        folder: Some(tempfile::tempdir().unwrap()),
        ..Tiered::default()
    };
    println!("{}", conformance::run_all(harness).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_hints_an_outcome_is_seen_late_and_nothing_else_differs() {
    let mut failed = Vec::new();
    for case in conformance::cases() {
        let run = tokio::spawn(async move {
            let harness = Tiered {
                hint: HINT,
                ..Tiered::default()
            };
            conformance::run_only(harness, &case.to_string()).await;
        });
        if run.await.is_err() {
            failed.push(case.to_string());
        }
    }
    // Who asked before the release may leave its hint after it: the last one then sees it late.
    failed.retain(|case| case != "race/a_release_lets_one_of_many_run");
    // Asks right after each renewal how long the lease is.
    assert_eq!(failed, ["renew/a_lease_counts_from_its_renewal"]);
}
