//! Shutdown drains, and says what it could not wait for.

use std::sync::Arc;
use std::time::Duration;

use idem::store::MemoryStore;
use idem::{Engine, Error, UnknownReason};
use tokio::sync::{Notify, oneshot};

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, engine, until};

/// Waits until an engine takes no calls, and returns what it says.
async fn refusal(engine: &Engine) -> Error {
    loop {
        let call = engine.call("shutdown.refused", &1, DAY);
        match call.run(async { Ok::<_, Error>(2) }).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn bodies_that_end_in_time_are_recorded() {
    let store = MemoryStore::new();
    let first = engine(store.clone()).await;
    let (open, gate) = oneshot::channel();
    let (start, started) = oneshot::channel();
    let call = first.call("shutdown.drains", &1, DAY).run(async move {
        start.send(()).ok();
        gate.await.ok();
        Ok::<_, Error>(1)
    });
    // Its client has gone: only the engine knows of it.
    let caller = tokio::spawn(call);
    started.await.unwrap();
    caller.abort();

    let down = tokio::spawn({
        let engine = first.clone();
        async move { engine.shutdown(Duration::from_secs(20)).await }
    });
    assert_eq!(refusal(&first).await, Error::ShuttingDown);
    assert!(!down.is_finished());
    open.send(()).unwrap();
    assert_eq!(down.await.unwrap().unwrap().unknown, 0);

    let other = engine(store).await;
    let replayed = other.call("shutdown.drains", &1, DAY);
    assert_eq!(replayed.run(async { Ok::<_, Error>(9) }).await, Ok(1));
}

#[tokio::test]
async fn bodies_that_do_not_end_in_time_are_unknown_and_a_late_answer_heals_them() {
    let store = MemoryStore::new();
    let first = engine(store.clone()).await;
    let (open, gate) = oneshot::channel();
    let (start, started) = oneshot::channel();
    let call = tokio::spawn(first.call("shutdown.late", &1, DAY).run(async move {
        start.send(()).ok();
        gate.await.ok();
        Ok::<_, Error>(1)
    }));
    started.await.unwrap();
    let drained = first.shutdown(Duration::from_millis(20)).await.unwrap();
    assert_eq!(drained.unknown, 1);

    let other = engine(store).await;
    let again = || other.call("shutdown.late", &1, DAY);
    let refused = again().run(async { Ok::<_, Error>(9) }).await;
    assert!(matches!(
        refused,
        Err(Error::UnknownOutcome {
            reason: UnknownReason::ShutDown,
            ..
        })
    ));
    // The process did not end after all.
    open.send(()).unwrap();
    assert_eq!(call.await.unwrap(), Ok(1));
    assert_eq!(again().run(async { Ok::<_, Error>(9) }).await, Ok(1));
}

#[tokio::test]
async fn a_body_in_its_callers_task_that_was_reserving_at_shutdown_is_waited_for() {
    let held = Arc::new(Notify::new());
    let store = Faulty::default().on_reserve([Fault::HoldUntil(Arc::clone(&held))]);
    let engine = engine(store.clone()).await;
    let (start, started) = oneshot::channel();
    let (open, gate) = oneshot::channel();
    let call = tokio::spawn({
        let engine = engine.clone();
        let body = async move {
            start.send(()).ok();
            gate.await.ok();
            Ok::<_, Error>(1)
        };
        async move {
            engine
                .call("shutdown.here", &1, DAY)
                .run_borrowed(body)
                .await
        }
    });
    until(|| store.reserves() != 0).await;
    let down = tokio::spawn({
        let engine = engine.clone();
        async move { engine.shutdown(Duration::from_secs(20)).await }
    });
    refusal(&engine).await;
    held.notify_one();
    started.await.unwrap();
    // On one thread, whoever could go on has gone on after this.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!down.is_finished(), "a body runs");
    open.send(()).unwrap();
    assert_eq!(down.await.unwrap().unwrap().unknown, 0);
    assert_eq!(call.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn no_body_begins_after_shutdown_has_returned_and_its_key_is_free() {
    for here in [false, true] {
        let held = Arc::new(Notify::new());
        let store = Faulty::default().on_reserve([Fault::HoldUntil(Arc::clone(&held))]);
        let first = engine(store.clone()).await;
        let runs = Runs::default();
        let call = tokio::spawn({
            let (engine, runs) = (first.clone(), runs.clone());
            async move {
                let call = engine.call("shutdown.begins", &1, DAY);
                let body = async move { Ok::<_, Error>(runs.add()) };
                if here {
                    call.run_borrowed(body).await
                } else {
                    call.run(body).await
                }
            }
        });
        until(|| store.reserves() != 0).await;
        first.shutdown(Duration::from_millis(20)).await.unwrap();
        held.notify_one();
        assert_eq!(call.await.unwrap(), Err(Error::ShuttingDown));
        assert_eq!(runs.count(), 0);

        let other = engine(store.inner.clone()).await;
        let call = other.call("shutdown.begins", &1, DAY);
        let (answer, outcome) = call.run_detailed(async { Ok::<_, Error>(9) }).await;
        assert_eq!(answer, Ok(9));
        assert_eq!(outcome.attempt, 1, "the first one was given back");
    }
}
