//! Shutdown drains, and says what it could not wait for.

use std::time::Duration;

use idem::store::MemoryStore;
use idem::{Error, UnknownReason};
use tokio::sync::oneshot;

use crate::{DAY, engine};

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
    let refused = loop {
        let call = first.call("shutdown.drains", &2, DAY);
        match call.run(async { Ok::<_, Error>(2) }).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Error::ShuttingDown);
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
