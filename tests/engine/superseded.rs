//! A holder that comes back late: it never overwrites, and its caller never
//! gets its value as if it were recorded.

use std::sync::Arc;
use std::time::Duration;

use idem::store::MemoryStore;
use idem::testing::ManualClock;
use idem::{Engine, Error, How, OnUnknown, observe};
use tokio::sync::{Notify, oneshot};

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, until};

const LEASE: Duration = Duration::from_secs(3600);

/// Leases here are an hour of the store's time and of the renewal thread's, so
/// only the manual clock makes one lapse.
async fn engine(store: &MemoryStore) -> Engine {
    Engine::builder(store.clone())
        .lease(LEASE)
        .max_run(LEASE)
        .grace(Duration::ZERO)
        .build()
        .await
        .unwrap()
}

type Answer = Result<String, Error>;

/// A body that waits to be let go.
fn gated(
    name: &'static str,
) -> (
    oneshot::Sender<()>,
    oneshot::Receiver<()>,
    impl Future<Output = Answer> + Send,
) {
    let (open, gate) = oneshot::channel();
    let (start, started) = oneshot::channel();
    let body = async move {
        start.send(()).unwrap();
        gate.await.ok();
        Ok(name.to_owned())
    };
    (open, started, body)
}

#[tokio::test]
async fn a_superseded_holder_gets_the_recorded_answer() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let (slow, quick) = (engine(&store).await, engine(&store).await);

    let (open, started, body) = gated("slow");
    let zombie = tokio::spawn(observe(slow.call("zombie", &1, DAY).run(body)));
    started.await.unwrap();
    clock.advance(LEASE * 2);
    let taker = quick
        .call("zombie", &1, DAY)
        .on_unknown(OnUnknown::Rerun)
        .run_detailed(async { Answer::Ok("quick".to_owned()) });
    let (answer, outcome) = taker.await;
    assert_eq!(answer.as_deref(), Ok("quick"));
    assert_eq!((outcome.how, outcome.attempt), (How::Executed, 2));

    open.send(()).unwrap();
    let (answer, outcome) = zombie.await.unwrap();
    assert_eq!(answer.as_deref(), Ok("quick"), "never its own value");
    assert_eq!(outcome.unwrap().how, How::Replayed);
}

#[tokio::test(start_paused = true)]
async fn a_superseded_holder_without_a_recorded_answer_is_told_so() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let (slow, other) = (engine(&store).await, engine(&store).await);

    let (open, started, body) = gated("slow");
    let zombie = tokio::spawn(slow.call("zombie", &1, DAY).run(body));
    started.await.unwrap();
    clock.advance(LEASE * 2);
    let (open_other, started, body) = gated("other");
    let taker = tokio::spawn(
        other
            .call("zombie", &1, DAY)
            .on_unknown(OnUnknown::Rerun)
            .run(body),
    );
    started.await.unwrap();
    open.send(()).unwrap();
    // The taker still runs: the zombie waits for it, and gives up.
    assert_eq!(zombie.await.unwrap(), Err(Error::Superseded));
    open_other.send(()).unwrap();
    assert_eq!(taker.await.unwrap().as_deref(), Ok("other"));
}

#[tokio::test]
async fn a_late_holder_that_nobody_replaced_delivers_the_truth() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let (slow, other) = (engine(&store).await, engine(&store).await);

    let (open, started, body) = gated("slow");
    let late = tokio::spawn(slow.call("late", &1, DAY).run(body));
    started.await.unwrap();
    clock.advance(LEASE * 2);
    let never = || async { Answer::Ok("never".to_owned()) };
    let refused = other.call("late", &1, DAY).run(never()).await;
    assert!(refused.unwrap_err().is_unknown_outcome());

    open.send(()).unwrap();
    assert_eq!(late.await.unwrap().as_deref(), Ok("slow"));
    let healed = other.call("late", &1, DAY).run(never()).await;
    assert_eq!(healed.as_deref(), Ok("slow"));
}

#[tokio::test]
async fn a_reply_that_takes_longer_than_the_lease_begins_no_body() {
    let clock = ManualClock::new();
    let held = Arc::new(Notify::new());
    let store = Faulty::behind(MemoryStore::with_clock(clock.clone()))
        .on_reserve([Fault::HoldReply(Arc::clone(&held))]);
    let slow = Engine::builder(store.clone())
        .lease(LEASE)
        .max_run(LEASE)
        .grace(Duration::ZERO)
        .clock(clock.clone())
        .build()
        .await
        .unwrap();
    let quick = engine(&store.inner).await;
    let runs = Runs::default();
    let call = |engine: &Engine, name: &'static str| {
        let runs = runs.clone();
        let call = engine.call("zombie", &1, DAY).on_unknown(OnUnknown::Rerun);
        call.run(async move {
            runs.add();
            Answer::Ok(name.to_owned())
        })
    };
    let late = tokio::spawn(call(&slow, "slow"));
    until(|| store.reserves() != 0).await;
    clock.advance(LEASE * 2);
    assert_eq!(call(&quick, "quick").await.as_deref(), Ok("quick"));
    held.notify_one();
    assert_eq!(late.await.unwrap().as_deref(), Ok("quick"));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_reply_that_takes_longer_than_the_lease_is_confirmed_if_nobody_took_over() {
    let clock = ManualClock::new();
    let held = Arc::new(Notify::new());
    let store = Faulty::behind(MemoryStore::with_clock(clock.clone()))
        .on_reserve([Fault::HoldReply(Arc::clone(&held))]);
    let engine = Engine::builder(store.clone())
        .lease(LEASE)
        .max_run(LEASE)
        .clock(clock.clone())
        .build()
        .await
        .unwrap();
    let call = engine.call("late", &1, DAY);
    let late = tokio::spawn(call.run_detailed(async { Answer::Ok("late".to_owned()) }));
    until(|| store.reserves() != 0).await;
    clock.advance(LEASE * 2);
    held.notify_one();
    let (answer, outcome) = late.await.unwrap();
    assert_eq!(answer.as_deref(), Ok("late"));
    assert_eq!((outcome.how, outcome.attempt), (How::Executed, 1));
    assert_eq!(store.reserves(), 1);
}
