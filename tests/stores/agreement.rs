//! Random calls get the same replies from every store.

use std::sync::Arc;

use idem::store::{MemoryStore, SqliteStore, Store};
use idem::testing::ManualClock;

use crate::script::{agree, runtime};

#[test]
fn random_calls_get_the_same_replies() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let options = SqliteStore::options(folder.path().join("agreement.db")).clock(clock.clone());
    let stores: [Arc<dyn Store>; 2] = [
        Arc::new(MemoryStore::with_clock(clock.clone())),
        Arc::new(runtime.block_on(options.open()).unwrap()),
    ];
    agree(&runtime, &stores, &clock, 60);
}
