//! The store loses replies, refuses, breaks and hangs: the body runs at most
//! once, and only after a reservation that was confirmed.

use std::sync::Arc;
use std::time::Duration;

use idem::store::Store as _;
use idem::{Engine, Error, How, Outcome, StoreErrorKind, observe};
use tokio::sync::{Notify, oneshot};

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, idle, until};

async fn engine(store: &Faulty) -> Engine {
    Engine::builder(store.clone())
        .lease(Duration::from_secs(2))
        .grace(Duration::ZERO)
        .store_timeout(Duration::from_millis(300))
        .reserve_timeout(Duration::from_millis(900))
        .build()
        .await
        .unwrap()
}

async fn call(engine: &Engine, runs: &Runs) -> (Result<usize, Error>, Option<Outcome>) {
    let runs = runs.clone();
    let body = async move { Ok::<_, Error>(runs.add()) };
    observe(engine.call("faults.call", &1, DAY).run(body)).await
}

#[tokio::test]
async fn a_lost_reply_of_reserve_is_sent_again_and_answered_yours() {
    let store = Faulty::default().on_reserve([Fault::LoseReply, Fault::Refuse, Fault::LoseReply]);
    let (engine, runs) = (engine(&store).await, Runs::default());
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!(answer, Ok(1));
    assert_eq!(outcome.unwrap().attempt, 1, "the same attempt throughout");
    assert_eq!(store.reserves(), 4);
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_reservation_that_is_never_confirmed_runs_nothing_and_is_given_back() {
    let store = Faulty::default().on_reserve(vec![Fault::LoseReply; 100]);
    let (engine, runs) = (engine(&store).await, Runs::default());
    let (answer, outcome) = call(&engine, &runs).await;
    let Err(Error::Store(error)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(error.kind(), StoreErrorKind::Transient);
    assert!(error.is_ambiguous());
    assert_eq!(outcome.unwrap().how, How::Refused);
    assert_eq!(runs.count(), 0);
    store.heal();
    // Long before the lease lapses, and as a first attempt.
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!(answer, Ok(1));
    assert_eq!(outcome.unwrap().attempt, 1);
}

#[tokio::test]
async fn a_reservation_that_the_store_refuses_runs_nothing() {
    for (fault, kind, tries) in [
        (Fault::Refuse, StoreErrorKind::Transient, 2..100),
        (Fault::Break, StoreErrorKind::Permanent, 1..2),
    ] {
        let store = Faulty::default().on_reserve(vec![fault; 100]);
        let (engine, runs) = (engine(&store).await, Runs::default());
        let (answer, _) = call(&engine, &runs).await;
        assert!(matches!(answer, Err(Error::Store(error)) if error.kind() == kind));
        assert!(tries.contains(&store.reserves()), "{}", store.reserves());
        assert_eq!(runs.count(), 0);
        assert!(store.inner.is_empty());
    }
}

#[tokio::test]
async fn a_lost_reply_of_complete_is_sent_again() {
    let store = Faulty::default().on_end([Fault::LoseReply, Fault::LoseReply]);
    let (engine, runs) = (engine(&store).await, Runs::default());
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!(answer, Ok(1));
    assert!(outcome.unwrap().recorded);
    assert_eq!(store.ends(), 3);
    assert_eq!(call(&engine, &runs).await.0, Ok(1));
}

#[tokio::test]
async fn an_answer_that_cannot_be_recorded_yet_is_recorded_in_the_background() {
    let store = Faulty::default().on_end(vec![Fault::Refuse; 1_000]);
    let (engine, runs) = (engine(&store).await, Runs::default());
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!(answer, Ok(1), "the caller gets what was done");
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.how, outcome.recorded),
        (How::Executed, false),
        "and that it is not recorded"
    );
    assert_eq!(engine.stats().attempts, 1, "the attempt goes on");

    // Another process neither runs nor sees an answer yet.
    let other = Engine::builder(store.inner.clone()).build().await.unwrap();
    let waits = tokio::spawn({
        let runs = runs.clone();
        async move { call(&other, &runs).await.0 }
    });
    store.heal();
    assert_eq!(waits.await.unwrap(), Ok(1));
    idle(&engine).await;
    assert_eq!(call(&engine, &runs).await.0, Ok(1));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn an_answer_is_kept_until_somebody_puts_the_stores_settings_right() {
    let store = Faulty::default().on_end(vec![Fault::Forbid; 1_000]);
    let (engine, runs) = (engine(&store).await, Runs::default());
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!((answer, outcome.unwrap().recorded), (Ok(1), false));
    assert_eq!(engine.stats().attempts, 1, "the attempt goes on");
    store.heal();
    idle(&engine).await;
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!((answer, outcome.unwrap().how), (Ok(1), How::Replayed));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn while_it_is_told_in_the_background_the_lease_is_renewed() {
    let store = Faulty::default().on_end(vec![Fault::Refuse; 1_000]);
    let engine = Engine::builder(store.clone())
        .lease(Duration::from_millis(150))
        .max_run(Duration::from_millis(150))
        .grace(Duration::ZERO)
        .store_timeout(Duration::from_millis(50))
        .reserve_timeout(Duration::from_millis(50))
        .build()
        .await
        .unwrap();
    let runs = Runs::default();
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!(answer, Ok(1));
    let record = outcome.unwrap().record.unwrap();
    // Longer than the lease, and than it is renewed for a running body.
    let started = tokio::time::Instant::now();
    let lease = || store.inner.record(&record).unwrap().lease_until_us;
    let first = lease();
    until(|| started.elapsed() >= Duration::from_millis(600) && lease() != first).await;
    let other = Engine::builder(store.inner.clone())
        .grace(Duration::ZERO)
        .build()
        .await
        .unwrap();
    let body = runs.clone();
    let taker = other
        .call("faults.call", &1, DAY)
        .on_unknown(idem::OnUnknown::Rerun)
        .on_in_progress(idem::OnInProgress::Reject)
        .run(async move { Ok::<_, Error>(body.add()) });
    assert!(taker.await.unwrap_err().is_in_progress());
    store.heal();
    idle(&engine).await;
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn an_answer_that_the_store_refuses_for_good_lapses_to_unknown() {
    let store = Faulty::default().on_end([Fault::Break]);
    let engine = Engine::builder(store.clone())
        .lease(Duration::from_millis(100))
        .grace(Duration::ZERO)
        .build()
        .await
        .unwrap();
    let runs = Runs::default();
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!(answer, Ok(1));
    assert!(!outcome.unwrap().recorded);
    let (answer, _) = call(&engine, &runs).await;
    assert!(answer.unwrap_err().is_unknown_outcome());
    assert_eq!(runs.count(), 1);
    idle(&engine).await;
}

#[tokio::test]
async fn a_store_that_hangs_is_an_error_in_time() {
    let store = Faulty::default().on_reserve(vec![Fault::Hang; 100]);
    let (engine, runs) = (engine(&store).await, Runs::default());
    let started = tokio::time::Instant::now();
    let (answer, _) = call(&engine, &runs).await;
    assert!(matches!(answer, Err(Error::Store(error)) if error.is_ambiguous()));
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(runs.count(), 0);
}

#[tokio::test]
async fn a_caller_that_leaves_while_reserving_gives_the_key_back() {
    let held = Arc::new(Notify::new());
    let store = Faulty::default().on_reserve([Fault::HoldUntil(Arc::clone(&held))]);
    let (engine, runs) = (engine(&store).await, Runs::default());
    let caller = tokio::spawn({
        let (engine, runs) = (engine.clone(), runs.clone());
        async move { call(&engine, &runs).await }
    });
    until(|| store.reserves() != 0).await;
    caller.abort();
    caller.await.unwrap_err();
    held.notify_one();
    idle(&engine).await;
    assert_eq!(runs.count(), 0, "nobody was there to run for");
    let (answer, outcome) = call(&engine, &runs).await;
    assert_eq!(answer, Ok(1));
    assert_eq!(outcome.unwrap().attempt, 1);
    assert_eq!(store.kind(), "faulty");
}

/// An engine that gives a call to the store up soon, and its lease late.
async fn impatient(store: &Faulty) -> Engine {
    Engine::builder(store.clone())
        .lease(Duration::from_secs(2))
        .grace(Duration::ZERO)
        .store_timeout(Duration::from_millis(50))
        .reserve_timeout(Duration::from_millis(200))
        .build()
        .await
        .unwrap()
}

/// Calls one key; the body declares that nothing happened.
async fn release(engine: &Engine, gate: oneshot::Receiver<()>) -> Result<usize, Error> {
    let call = engine.call("faults.call", &1, DAY);
    let call = call.on_error(idem::on_error::Release).run(async move {
        gate.await.ok();
        Err(Error::NoContext)
    });
    call.await
}

#[tokio::test]
async fn a_reservation_that_lands_late_on_a_released_record_is_given_back() {
    let store = Faulty::default();
    let (engine, runs) = (impatient(&store).await, Runs::default());
    let (_, gate) = oneshot::channel();
    assert_eq!(release(&engine, gate).await, Err(Error::NoContext));

    let store = store.on_reserve(vec![Fault::Hang; 100]);
    let (answer, _) = call(&engine, &runs).await;
    assert!(matches!(answer, Err(Error::Store(error)) if error.is_ambiguous()));
    store.heal();
    // It was given back once, in vain.
    until(|| store.farewells_answered() != 0).await;
    store.land().await;
    assert_eq!(call(&engine, &runs).await.0, Ok(1), "no body had run");
}

#[tokio::test]
async fn a_first_try_that_lands_after_the_second_was_answered_is_given_back() {
    let store = Faulty::default().on_reserve([Fault::Hang]);
    let (engine, runs) = (impatient(&store).await, Runs::default());
    let other = Engine::builder(store.inner.clone()).build().await.unwrap();
    let (open, gate) = oneshot::channel();
    let running = tokio::spawn({
        let other = other.clone();
        async move { release(&other, gate).await }
    });
    until(|| other.stats().attempts != 0 && !store.inner.is_empty()).await;
    let rejected = engine
        .call("faults.call", &1, DAY)
        .on_in_progress(idem::OnInProgress::Reject)
        .run(async { Ok::<usize, Error>(0) });
    assert!(rejected.await.unwrap_err().is_in_progress());
    assert_eq!(store.reserves(), 2);
    open.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Err(Error::NoContext));

    store.land().await;
    assert_eq!(call(&engine, &runs).await.0, Ok(1), "no body had run");
}
