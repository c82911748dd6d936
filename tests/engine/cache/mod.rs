//! The cache of finished answers: the same answers as without one, never one
//! that is over, forgotten or another call's, and fewer questions to the store.

mod clocks;
mod http;
mod model;
mod other;
mod races;
mod same;

use std::time::Duration;

use idem::admin::Settled;
use idem::store::Store;
use idem::testing::ManualClock;
use idem::{Clock, Engine, EngineBuilder, Error, PlainCall};

use crate::{DAY, Runs};

const MIB: usize = 1 << 20;
const HOUR: Duration = Duration::from_secs(3_600);
const NAME: &str = "cache.charge";

fn builder(store: impl Store) -> EngineBuilder {
    Engine::builder(store).cache(MIB).cache_for(HOUR)
}

/// An engine with a cache, on the system's clock.
async fn cached(store: impl Store) -> Engine {
    builder(store).build().await.unwrap()
}

/// An engine with a cache, whose clock stands still.
async fn timed(store: impl Store, clock: impl Clock) -> Engine {
    builder(store).clock(clock).build().await.unwrap()
}

fn plain(engine: &Engine) -> PlainCall {
    engine.call(NAME, &1, DAY)
}

/// A call whose answer is the number of the run.
async fn charge(engine: &Engine, runs: &Runs) -> Result<usize, Error> {
    let runs = runs.clone();
    plain(engine).run(async move { Ok(runs.add()) }).await
}

async fn forget(engine: &Engine) -> Result<Settled, Error> {
    let record = engine.record(NAME).key(&1);
    record.forget("ada", "a test").await
}

fn manual() -> (ManualClock, idem::store::MemoryStore) {
    let clock = ManualClock::new();
    let store = idem::store::MemoryStore::with_clock(clock.clone());
    (clock, store)
}
