//! A sweep against live traffic, in memory and in a file.

use std::time::Duration;

use idem::Engine;
use idem::store::{MemoryStore, SqliteStore, Store};

use crate::traffic::is_swept_as_it_runs;

async fn engine(store: impl Store) -> Engine {
    let builder = Engine::builder(store).grace(Duration::from_millis(1));
    builder.build().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_against_live_traffic_in_memory() {
    let store = MemoryStore::new();
    let engines = [engine(store.clone()).await, engine(store).await];
    assert!(is_swept_as_it_runs(engines).await > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_against_live_traffic_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open(folder.path().join("swept.db"));
    let engines = [
        engine(open().await.unwrap()).await,
        engine(open().await.unwrap()).await,
    ];
    assert!(is_swept_as_it_runs(engines).await > 0);
}
