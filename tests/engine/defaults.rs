//! The four questions: each default, and that a change of it shows.

use std::time::Duration;

use idem::store::MemoryStore;
use idem::{Engine, Error, How, UnknownReason, idempotent, observe};
use tokio::sync::oneshot;

use crate::{DAY, Runs, engine, idle, memory, until};

type Gate = Option<oneshot::Receiver<()>>;

/// Nothing but what is required: every question has its default answer.
#[idempotent(key = order, name = "defaults.plain", ttl = "1h", engine = engine)]
async fn plain(engine: Engine, runs: Runs, order: u32, gate: Gate) -> Result<u32, Error> {
    let run = runs.add();
    if let Some(gate) = gate {
        gate.await.ok();
    }
    match order {
        13 => panic!("unlucky"),
        14 => Err(Error::PayloadMismatch {
            differs: vec![format!("run {run}")],
        }),
        order => Ok(order),
    }
}

async fn until_running(engine: &Engine) {
    until(|| engine.stats().attempts != 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_thirty_seconds_for_a_running_attempt() {
    let store = MemoryStore::new();
    let (first, second) = (engine(store.clone()).await, engine(store).await);
    let (runs, (open, gate)) = (Runs::default(), oneshot::channel());
    let running = tokio::spawn(plain(first.clone(), runs.clone(), 1, Some(gate)));
    until_running(&first).await;
    // Also in another process, which waits by asking the store, and also
    // without the attribute.
    for (other, attribute) in [(&first, true), (&second, true), (&second, false)] {
        let started = tokio::time::Instant::now();
        let answer = if attribute {
            plain(other.clone(), runs.clone(), 1, None).await
        } else {
            let call = other.call("defaults.plain", &1, DAY);
            call.run(async { panic!("a second run") }).await
        };
        assert!(answer.unwrap_err().is_in_progress());
        let waited = started.elapsed();
        assert!(waited >= Duration::from_secs(30) && waited < Duration::from_secs(32));
    }
    open.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Ok(1));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn an_error_is_recorded_and_replayed_as_the_same_value() {
    let (engine, runs) = (memory().await, Runs::default());
    let expected = Err(Error::PayloadMismatch {
        differs: vec!["run 1".to_owned()],
    });
    for _ in 0..3 {
        assert_eq!(
            plain(engine.clone(), runs.clone(), 14, None).await,
            expected
        );
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn after_a_panic_the_outcome_is_unknown_and_refused() {
    let (engine, runs) = (memory().await, Runs::default());
    let panicked = tokio::spawn(plain(engine.clone(), runs.clone(), 13, None)).await;
    let text = *panicked
        .unwrap_err()
        .into_panic()
        .downcast::<&str>()
        .unwrap();
    assert_eq!(text, "unlucky", "the panic goes on in its caller");
    for _ in 0..2 {
        let answer = plain(engine.clone(), runs.clone(), 13, None).await;
        assert!(matches!(
            answer,
            Err(Error::UnknownOutcome {
                reason: UnknownReason::Panicked,
                exhausted: false,
                ..
            })
        ));
    }
    assert_eq!(runs.count(), 1);
    idle(&engine).await;
}

#[tokio::test]
async fn a_dropped_caller_does_not_stop_the_body() {
    let (engine, runs) = (memory().await, Runs::default());
    let (open, gate) = oneshot::channel();
    let caller = tokio::spawn(plain(engine.clone(), runs.clone(), 1, Some(gate)));
    until(|| runs.count() != 0).await;
    caller.abort();
    caller.await.unwrap_err();
    open.send(()).unwrap();
    let (answer, outcome) = observe(plain(engine.clone(), runs.clone(), 1, None)).await;
    assert_eq!(answer, Ok(1));
    let how = outcome.unwrap().how;
    assert!(matches!(how, How::Replayed | How::Coalesced), "{how:?}");
    assert_eq!(runs.count(), 1);
}

#[idempotent(key = order, name = "defaults.missing", ttl = "1h", engine = engine)]
async fn missing(engine: Engine, runs: Runs, order: Option<u32>) -> Result<(), Error> {
    runs.add();
    Ok(())
}

#[idempotent(
    key = order, name = "defaults.missing_runs", ttl = "1h", engine = engine, on_missing_key = run
)]
async fn missing_runs(engine: Engine, runs: Runs, order: Option<u32>) -> Result<(), Error> {
    runs.add();
    Ok(())
}

#[tokio::test]
async fn a_missing_key_is_an_error_unless_run_is_chosen() {
    let (engine, runs) = (memory().await, Runs::default());
    let answer = missing(engine.clone(), runs.clone(), None).await;
    assert!(matches!(answer, Err(Error::InvalidKey { .. })));
    assert_eq!(runs.count(), 0);
    for _ in 0..2 {
        let call = observe(missing_runs(engine.clone(), runs.clone(), None));
        let (answer, outcome) = call.await;
        assert_eq!(answer, Ok(()));
        assert_eq!(outcome.unwrap().how, How::Unprotected);
    }
    assert_eq!(runs.count(), 2);
    for _ in 0..2 {
        missing_runs(engine.clone(), runs.clone(), Some(1))
            .await
            .unwrap();
    }
    assert_eq!(runs.count(), 3);
}

#[idempotent(
    key = order, name = "defaults.missing_calls", ttl = "1h", engine = engine,
    on_missing_key = run
)]
async fn missing_calls(engine: Engine, runs: Runs, order: Option<u32>) -> Result<u32, Error> {
    plain(engine, runs, 1, None).await
}

#[idempotent(
    key = order, name = "defaults.missing_calls", ttl = "1h", engine = engine,
    on_missing_key = run, on_cancel = abandon
)]
async fn missing_calls_here(
    engine: &Engine,
    runs: &Runs,
    order: Option<u32>,
) -> Result<u32, Error> {
    plain(engine.clone(), runs.clone(), 1, None).await
}

#[tokio::test]
async fn a_call_without_a_key_is_reported_as_such_whatever_its_body_calls() {
    let (engine, runs) = (memory().await, Runs::default());
    for _ in 0..2 {
        for (answer, outcome) in [
            observe(missing_calls(engine.clone(), runs.clone(), None)).await,
            observe(missing_calls_here(&engine, &runs, None)).await,
        ] {
            assert_eq!(answer, Ok(1));
            assert_eq!(outcome.unwrap().how, How::Unprotected);
        }
    }
    assert_eq!(runs.count(), 1, "the inner call has a key");
}

#[idempotent(
    key = order, name = "defaults.reject", ttl = "1h", engine = engine, on_in_progress = reject
)]
async fn reject(engine: Engine, order: u32, gate: Gate) -> Result<(), Error> {
    if let Some(gate) = gate {
        gate.await.ok();
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn reject_answers_at_once() {
    let engine = memory().await;
    let (open, gate) = oneshot::channel();
    let running = tokio::spawn(reject(engine.clone(), 1, Some(gate)));
    until_running(&engine).await;
    let started = tokio::time::Instant::now();
    let answer = reject(engine.clone(), 1, None).await;
    let retry_after = answer.unwrap_err().retry_after().unwrap();
    assert!(retry_after > Duration::ZERO && retry_after <= Duration::from_secs(5));
    assert!(started.elapsed() < Duration::from_secs(1));
    open.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[idempotent(
    key = order, name = "defaults.release", ttl = "1h", engine = engine, payload = amount,
    on_error = release
)]
async fn release(engine: Engine, runs: Runs, order: u32, amount: u32) -> Result<u32, Error> {
    match runs.add() {
        1 => Err(Error::Failed {
            message: "not sent".to_owned(),
        }),
        run => Ok(amount + u32::try_from(run).unwrap()),
    }
}

#[tokio::test]
async fn a_released_record_runs_with_the_next_callers_payload() {
    let (engine, runs) = (memory().await, Runs::default());
    release(engine.clone(), runs.clone(), 1, 100)
        .await
        .unwrap_err();
    let answer = release(engine.clone(), runs.clone(), 1, 200).await;
    assert_eq!(answer, Ok(202));
    let mismatch = release(engine.clone(), runs.clone(), 1, 100).await;
    assert_eq!(
        mismatch,
        Err(Error::PayloadMismatch {
            differs: vec!["amount".to_owned()]
        })
    );
    assert_eq!(runs.count(), 2);
}

#[idempotent(
    key = order, name = "defaults.unknown", ttl = "1h", engine = engine, on_error = unknown
)]
async fn unknown(engine: Engine, runs: Runs, order: u32) -> Result<(), Error> {
    runs.add();
    Err(Error::NoContext)
}

#[tokio::test]
async fn under_unknown_an_error_leaves_the_outcome_unknown() {
    let (engine, runs) = (memory().await, Runs::default());
    let own = unknown(engine.clone(), runs.clone(), 1).await;
    assert_eq!(own, Err(Error::NoContext));
    let next = unknown(engine.clone(), runs.clone(), 1).await;
    assert!(next.unwrap_err().is_unknown_outcome());
    assert_eq!(runs.count(), 1);
}
