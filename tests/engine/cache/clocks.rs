//! How long an answer is used: to the microsecond, and whatever a clock does.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use idem::{Clock, Engine, Error, How};

use super::{HOUR, NAME, builder, cached, charge, manual, timed};
use crate::faulty::Faulty;
use crate::{DAY, Runs};

const TICK: Duration = Duration::from_micros(1);

#[tokio::test]
async fn an_answer_is_used_until_it_is_an_hour_old_and_then_the_store_is_asked() {
    let (clock, store) = manual();
    let (store, runs) = (Faulty::behind(store), Runs::default());
    let engine = timed(store.clone(), clock.clone()).await;
    charge(&engine, &runs).await.unwrap();
    for asked in 1..4 {
        // From its completion, and from each time that the store was asked.
        clock.advance(HOUR - TICK);
        assert_eq!(charge(&engine, &runs).await, Ok(1));
        assert_eq!(store.reserves(), asked);
        clock.advance(TICK);
        assert_eq!(charge(&engine, &runs).await, Ok(1));
        assert_eq!(store.reserves(), asked + 1);
    }
}

#[tokio::test]
async fn an_answer_is_never_used_when_its_ttl_is_over() {
    let (clock, store) = manual();
    let (store, runs) = (Faulty::behind(store), Runs::default());
    let minute = Duration::from_secs(60);
    let engines = [
        timed(store.clone(), clock.clone()).await,
        timed(store.clone(), clock.clone()).await,
    ];
    let call = |engine: &Engine| {
        let (runs, call) = (runs.clone(), engine.call(NAME, &1, minute));
        call.run(async move { Ok::<_, Error>(runs.add()) })
    };
    assert_eq!(call(&engines[0]).await, Ok(1));
    clock.advance(minute / 2);
    // The second has it from a replay, of which half a minute is left.
    assert_eq!(call(&engines[1]).await, Ok(1));
    clock.advance(minute / 2 - TICK);
    for engine in &engines {
        assert_eq!(call(engine).await, Ok(1));
    }
    assert_eq!(store.reserves(), 2);
    // The last moment of a TTL is the store's to decide.
    clock.advance(TICK);
    for (engine, asked) in engines.iter().zip(3..) {
        assert_eq!(call(engine).await, Ok(1));
        assert_eq!(store.reserves(), asked);
    }
    clock.advance(TICK);
    assert_eq!(call(&engines[1]).await, Ok(2));
    assert_eq!(call(&engines[0]).await, Ok(2));
}

/// Two clocks that a test moves one by one.
#[derive(Debug, Clone, Default)]
struct Two {
    monotonic_us: Arc<AtomicI64>,
    unix_us: Arc<AtomicI64>,
}

impl Clock for Two {
    fn unix_us(&self) -> i64 {
        1_767_225_600_000_000 + self.unix_us.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_micros(self.monotonic_us.load(Ordering::SeqCst).try_into().unwrap())
    }
}

const HOUR_US: i64 = 3_600_000_000;

#[tokio::test]
async fn a_host_that_sleeps_or_sets_its_clock_back_keeps_no_answer_longer() {
    for sleeps in [true, false] {
        let (clock, runs) = (Two::default(), Runs::default());
        let store = Faulty::default();
        let engine = timed(store.clone(), clock.clone()).await;
        charge(&engine, &runs).await.unwrap();
        let (moves, other) = if sleeps {
            (&clock.unix_us, &clock.monotonic_us)
        } else {
            clock.unix_us.store(-HOUR_US, Ordering::SeqCst);
            (&clock.monotonic_us, &clock.unix_us)
        };
        let before = other.load(Ordering::SeqCst);
        moves.store(HOUR_US - 1, Ordering::SeqCst);
        charge(&engine, &runs).await.unwrap();
        assert_eq!(store.reserves(), 1, "sleeps: {sleeps}");
        moves.store(HOUR_US, Ordering::SeqCst);
        charge(&engine, &runs).await.unwrap();
        assert_eq!(store.reserves(), 2, "sleeps: {sleeps}");
        assert_eq!(other.load(Ordering::SeqCst), before);
    }
}

#[tokio::test]
async fn it_is_off_by_default_and_its_knobs_have_limits() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let engine = crate::engine(store.clone()).await;
    for _ in 0..3 {
        charge(&engine, &runs).await.unwrap();
    }
    assert_eq!(store.reserves(), 3);

    let refused = async |bytes: usize, age: Duration| {
        let engine = builder(Faulty::default()).cache(bytes).cache_for(age);
        engine.build().await.unwrap_err().to_string()
    };
    assert!(refused(1, HOUR).await.contains("64 KiB to 64 GiB"));
    assert!(refused((64 << 10) - 1, HOUR).await.contains("64 KiB"));
    assert!(refused((64 << 30) + 1, HOUR).await.contains("64 KiB"));
    for age in [Duration::ZERO, HOUR + TICK] {
        assert!(refused(0, age).await.contains("1 ms to 1 hour"));
    }
}

#[tokio::test]
async fn a_hit_is_a_replay_like_any_other() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let engine = cached(store.clone()).await;
    charge(&engine, &runs).await.unwrap();
    let hit = engine.call(NAME, &1, DAY).run_detailed(async { Ok(0) });
    let (answer, hit): (Result<usize, Error>, _) = hit.await;
    assert_eq!(
        (answer, hit.how, hit.attempt, hit.recorded),
        (Ok(1), How::Replayed, 1, true)
    );
    assert_eq!(store.reserves(), 1);
    // What the store says of it, when another engine asks.
    let other = cached(store).await;
    let mut said = Vec::new();
    for _ in 0..2 {
        let asked = other.call(NAME, &1, DAY).run_detailed(async { Ok(0) });
        let (answer, outcome): (Result<usize, Error>, _) = asked.await;
        said.push((answer, outcome));
    }
    assert_eq!(said[0], said[1]);
    assert_eq!(said[0].1.record, hit.record);
}
