//! A body that blocks its only runtime thread keeps its lease.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use idem::store::SqliteStore;
use idem::{Engine, Error, idempotent};

use crate::Runs;

const LEASE: Duration = Duration::from_millis(400);

/// A taker would run it again at once.
#[idempotent(
    key = order, name = "starved.charge", ttl = "1h", engine = engine, on_unknown = rerun
)]
async fn charge(
    engine: Engine,
    runs: Runs,
    order: u32,
    blocks: Option<mpsc::Sender<()>>,
) -> Result<String, Error> {
    let run = runs.add();
    if let Some(started) = blocks {
        started.send(()).unwrap();
        // Waits for nothing: it is the fault itself.
        std::thread::sleep(LEASE * 3);
    }
    Ok(format!("run {run}"))
}

async fn build(path: &Path) -> Engine {
    Engine::builder(SqliteStore::open(path).await.unwrap())
        .lease(LEASE)
        .grace(Duration::from_millis(50))
        .build()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_body_that_blocks_its_only_thread_for_three_leases_keeps_its_lease() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let runs = Runs::default();
    let (start, started) = mpsc::channel();
    let holder = {
        let (path, runs) = (path.clone(), runs.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async { charge(build(&path).await, runs, 1, Some(start)).await })
        })
    };
    tokio::task::spawn_blocking(move || started.recv().unwrap())
        .await
        .unwrap();
    let taker = build(&path).await;
    let answer = charge(taker, runs.clone(), 1, None).await;
    assert_eq!(answer, Ok("run 1".to_owned()));
    assert_eq!(runs.count(), 1);
    let own = tokio::task::spawn_blocking(move || holder.join().unwrap()).await;
    assert_eq!(own.unwrap(), answer);
}
