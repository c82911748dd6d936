//! The store in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use idem::StoreError;
use idem::store::{MemoryStore, Store};
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};

#[derive(Default)]
struct Memory(Mutex<HashMap<String, MemoryStore>>);

impl Harness for Memory {
    async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
        let mut places = self.0.lock().unwrap();
        let new = || MemoryStore::with_clock(clock);
        Ok(Arc::new(
            places.entry(place.to_owned()).or_insert_with(new).clone(),
        ))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_keeps_the_contract() {
    println!("{}", conformance::run_all(Memory::default()).await);
}
