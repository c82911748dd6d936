//! Sweeping in the background: that it goes on, how it ends, and that several do
//! no harm. Time is tokio's, which is paused and moves when everybody waits.

use std::time::Duration;

use idem::store::{MemoryStore, Store};
use idem::testing::ManualClock;
use idem::{Clock as _, Drained, Engine, Error, Stats};
use tokio::time::{Instant, sleep};

use crate::DAY;
use crate::faulty::{Fault, Faulty};

const MINUTE: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_secs(600);

struct World {
    clock: ManualClock,
    memory: MemoryStore,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new();
        let memory = MemoryStore::with_clock(clock.clone());
        Self { clock, memory }
    }

    async fn engine(&self, store: impl Store) -> Engine {
        let builder = Engine::builder(store).clock(self.clock.clone());
        builder.build().await.unwrap()
    }

    /// Records that have expired, and one that has not.
    async fn expired(&self, engine: &Engine, keys: std::ops::Range<u32>) {
        for key in keys {
            let call = engine.call("sweeper.done", &key, MINUTE);
            call.run(async { Ok::<_, Error>(()) }).await.unwrap();
        }
        let call = engine.call("sweeper.kept", &0, idem::Ttl::Forever);
        call.run(async { Ok::<_, Error>(()) }).await.unwrap();
        self.clock.advance(MINUTE * 2);
    }
}

#[tokio::test(start_paused = true)]
async fn it_sweeps_again_and_again_in_batches() {
    let world = World::new();
    let engine = world.engine(world.memory.clone()).await;
    let sweeper = engine.sweeper(EVERY);
    assert_eq!(sweeper.swept(), Default::default());
    world.expired(&engine, 0..2_500).await;
    sleep(MINUTE).await;
    let first = sweeper.swept();
    assert_eq!((first.rows, first.passes, first.failures), (2_500, 1, 0));
    let now = Duration::from_micros(world.clock.unix_us().try_into().unwrap());
    assert_eq!(first.last, std::time::UNIX_EPOCH.checked_add(now));
    for pass in 2..=20 {
        world.expired(&engine, 0..10).await;
        sleep(EVERY).await;
        // One in each half to all of the time.
        let passes = sweeper.swept().passes;
        assert!((pass..=2 * pass).contains(&passes), "{pass}: {passes}");
        assert_eq!(sweeper.swept().rows, 2_500 + 10 * (pass - 1));
    }
    assert!(
        sweeper.swept().passes > 20,
        "not all of them at the full time"
    );
    assert!(sweeper.is_running());
    assert_eq!(engine.stats(), Stats::default(), "no work of the engine's");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_expired_stays() {
    let world = World::new();
    let engine = world.engine(world.memory.clone()).await;
    let call = || engine.call("sweeper.lasting", &1, DAY);
    call().run(async { Ok::<_, Error>(1) }).await.unwrap();
    let sweeper = engine.sweeper(EVERY);
    sleep(EVERY).await;
    assert!(sweeper.swept().passes > 0);
    assert_eq!(sweeper.swept().rows, 0);
    assert_eq!(call().run(async { Ok::<_, Error>(2) }).await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn dropped_it_stops() {
    let world = World::new();
    let engine = world.engine(world.memory.clone()).await;
    let sweeper = engine.sweeper(EVERY);
    drop(sweeper);
    world.expired(&engine, 0..3).await;
    sleep(EVERY * 3).await;
    assert_eq!(engine.sweep().await, Ok(3), "nobody swept");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_it_at_once_and_waits_for_no_pause() {
    let world = World::new();
    let engine = world.engine(world.memory.clone()).await;
    let sweeper = engine.sweeper(DAY);
    sleep(MINUTE).await;
    assert!(sweeper.is_running());
    let began = Instant::now();
    let drained: Drained = engine.shutdown(MINUTE).await.unwrap();
    assert_eq!(drained.unknown, 0);
    assert_eq!(began.elapsed(), Duration::ZERO);
    crate::until(|| !sweeper.is_running()).await;
    let late = engine.sweeper(EVERY);
    crate::until(|| !late.is_running()).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_the_next_pass_does_it() {
    let world = World::new();
    let store = Faulty::behind(world.memory.clone()).on_sweep([Fault::Refuse, Fault::Break]);
    let engine = world.engine(store).await;
    world.expired(&engine, 0..3).await;
    let sweeper = engine.sweeper(EVERY);
    sleep(MINUTE).await;
    let swept = sweeper.swept();
    assert_eq!((swept.rows, swept.passes, swept.failures), (0, 0, 1));
    assert_eq!(swept.last, None);
    sleep(EVERY * 2).await;
    let swept = sweeper.swept();
    assert_eq!((swept.rows, swept.failures), (3, 2));
    assert!(swept.passes > 0);
}

#[tokio::test(start_paused = true)]
async fn several_processes_share_the_rows() {
    let world = World::new();
    let mut engines = Vec::new();
    for _ in 0..3 {
        engines.push(world.engine(world.memory.clone()).await);
    }
    let sweepers: Vec<_> = engines.iter().map(|one| one.sweeper(EVERY)).collect();
    let mut total = 0;
    for _ in 0..10 {
        world.expired(&engines[0], 0..500).await;
        total += 500;
        sleep(EVERY).await;
        let rows: Vec<_> = sweepers.iter().map(|one| one.swept().rows).collect();
        assert_eq!(rows.iter().sum::<u64>(), total, "each once: {rows:?}");
    }
    let busy = sweepers.iter().filter(|one| one.swept().rows > 0).count();
    assert!(busy > 1, "they do not all come at the same time");
}
