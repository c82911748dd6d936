//! Proves what the engine and the attribute promise: one run, one answer, the
//! defaults of the four questions, every way to be cancelled, and every way a
//! store can fail to answer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cache;
mod cancel;
mod context;
mod crowd;
mod defaults;
mod faulty;
mod identity;
mod listing;
mod log;
mod nested;
mod orders;
mod panics;
mod polled;
mod reconcile;
mod reconcile_races;
mod records;
mod recovery;
mod renewal;
mod replay;
mod secrecy;
mod shutdown;
mod singleflight;
mod start;
mod starved;
mod steps;
mod store_faults;
mod superseded;
mod sweeper;
mod version;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::store::{MemoryStore, Store};
use idem::{Clock as _, Engine, Stats, SystemClock};

const DAY: Duration = Duration::from_secs(86_400);

/// Counts runs of a body.
#[derive(Debug, Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

async fn engine(store: impl Store) -> Engine {
    Engine::builder(store).build().await.unwrap()
}

async fn memory() -> Engine {
    engine(MemoryStore::new()).await
}

/// Gives way to other tasks until something holds.
async fn until(holds: impl Fn() -> bool) {
    let started = SystemClock.monotonic();
    while !holds() {
        assert!(
            SystemClock.monotonic() - started < Duration::from_secs(20),
            "it does not come true"
        );
        tokio::task::yield_now().await;
    }
}

/// Waits until an engine has nothing running.
async fn idle(engine: &Engine) {
    until(|| engine.stats() == Stats::default()).await;
}
