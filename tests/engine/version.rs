//! Ordered apply: versions of one key on one engine, one running at a time, the
//! older ones refused or answered by the newest.

use std::time::Duration;

use idem::record::VersionBytes;
use idem::store::{MemoryStore, SqliteStore};
use idem::testing::ManualClock;
use idem::{Engine, Error, How, OnInProgress, OnStale, OnUnknown, PlainCall, UnknownReason};
use tokio::sync::oneshot;

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, engine, idle, memory, orders, until};

fn call(engine: &Engine, version: u64) -> PlainCall {
    engine.call("version", &1, DAY).version(&version)
}

async fn apply(engine: &Engine, version: u64) -> Result<u64, Error> {
    call(engine, version).run(async move { Ok(version) }).await
}

fn stale(applied: Option<u64>) -> Error {
    Error::Stale {
        applied: applied.map(|version| VersionBytes::of(&version)),
    }
}

/// A body that waits to be let go, and says that it has begun.
fn gated(
    answer: Result<u64, Error>,
) -> (
    oneshot::Sender<()>,
    oneshot::Receiver<()>,
    impl Future<Output = Result<u64, Error>> + Send,
) {
    let (open, gate) = oneshot::channel();
    let (start, started) = oneshot::channel();
    let body = async move {
        start.send(()).unwrap();
        gate.await.ok();
        answer
    };
    (open, started, body)
}

#[tokio::test]
async fn in_every_order_what_is_applied_only_rises() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("store.db"));
    for engine in [memory().await, engine(sqlite.await.unwrap()).await] {
        orders::one_by_one(&engine).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_once_in_every_order_what_is_applied_only_rises() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("store.db"));
    for engine in [memory().await, engine(sqlite.await.unwrap()).await] {
        orders::at_once(&engine).await;
        idle(&engine).await;
    }
}

#[tokio::test]
async fn other_versions_wait_for_the_running_one_and_ask_again() {
    let engine = memory().await;
    let (open, started, body) = gated(Ok(2));
    let running = tokio::spawn(call(&engine, 2).run(body));
    started.await.unwrap();
    let waiting = [1, 2, 3].map(|version| {
        let engine = engine.clone();
        tokio::spawn(async move { apply(&engine, version).await })
    });
    until(|| engine.stats().waiters == 3).await;
    let told = call(&engine, 3).on_in_progress(OnInProgress::Reject);
    let told = told.run(async { Ok::<u64, Error>(0) }).await;
    assert!(told.unwrap_err().is_in_progress());
    open.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Ok(2));
    let [older, same, newer] = waiting;
    let older = older.await.unwrap().unwrap_err();
    assert!(
        older == stale(Some(2)) || older == stale(Some(3)),
        "{older:?}"
    );
    let same = same.await.unwrap();
    assert_eq!(same, Ok(2), "it shared the flight");
    assert_eq!(newer.await.unwrap(), Ok(3));
    idle(&engine).await;
}

#[tokio::test]
async fn an_older_one_runs_when_the_newer_one_had_no_effect() {
    let engine = memory().await;
    let (open, started, body) = gated(Err(Error::NoContext));
    let newer = call(&engine, 2).on_error(idem::on_error::Release);
    let newer = tokio::spawn(newer.run(body));
    started.await.unwrap();
    let older = {
        let engine = engine.clone();
        tokio::spawn(async move { apply(&engine, 1).await })
    };
    until(|| engine.stats().waiters == 1).await;
    open.send(()).unwrap();
    assert_eq!(newer.await.unwrap(), Err(Error::NoContext));
    assert_eq!(older.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn an_unknown_version_is_the_choice_of_newer_ones_too() {
    let engine = memory().await;
    assert_eq!(apply(&engine, 1).await, Ok(1));
    let panics = call(&engine, 2).run(async {
        assert!(idem::context().is_err(), "the body of the test panics");
        Ok::<u64, Error>(0)
    });
    assert!(tokio::spawn(panics).await.is_err());
    assert_eq!(apply(&engine, 0).await, Err(stale(Some(1))));
    assert_eq!(apply(&engine, 1).await, Ok(1), "replayed");
    for version in [2, 3] {
        let told = apply(&engine, version).await.unwrap_err();
        assert!(told.is_unknown_outcome(), "{told:?}");
    }
    let rerun = call(&engine, 3).on_unknown(OnUnknown::Rerun);
    let (answer, outcome) = rerun.run_detailed(async { Ok::<u64, Error>(3) }).await;
    assert_eq!(answer, Ok(3));
    assert_eq!((outcome.how, outcome.attempt), (How::Executed, 2));
    assert_eq!(apply(&engine, 2).await, Err(stale(Some(3))));
}

#[tokio::test]
async fn an_error_of_a_newer_version_is_the_newest_answer_and_not_applied() {
    let engine = memory().await;
    let fail = |version| call(&engine, version).run(async { Err::<u64, _>(Error::NoContext) });
    assert_eq!(fail(2).await, Err(Error::NoContext));
    assert_eq!(apply(&engine, 1).await, Err(stale(None)));
    assert_eq!(apply(&engine, 2).await, Err(Error::NoContext), "replayed");
    assert_eq!(apply(&engine, 3).await, Ok(3));
    assert_eq!(fail(5).await, Err(Error::NoContext));
    assert_eq!(apply(&engine, 4).await, Err(stale(Some(3))));
    let newest = call(&engine, 4).on_stale(OnStale::Replay);
    let (answer, outcome) = newest.run_detailed(async { Ok::<u64, _>(4) }).await;
    assert_eq!((answer, outcome.how), (Err(Error::NoContext), How::Stale));
}

#[tokio::test]
async fn payloads_are_compared_between_equal_versions_only() {
    let engine = memory().await;
    let apply = |version: u64, payload: u64| {
        let call = call(&engine, version).payload(&payload);
        call.run(async move { Ok::<_, Error>(payload) })
    };
    assert_eq!(apply(1, 10).await, Ok(10));
    assert_eq!(apply(2, 20).await, Ok(20));
    assert!(apply(2, 21).await.unwrap_err().is_mismatch());
    assert_eq!(apply(1, 99).await, Err(stale(Some(2))));
}

#[tokio::test]
async fn the_newest_answer_comes_in_the_same_round_trip() {
    let store = Faulty::default();
    let engine = engine(store.clone()).await;
    assert_eq!(apply(&engine, 2).await, Ok(2));
    let before = store.reserves();
    let runs = Runs::default();
    let body = {
        let runs = runs.clone();
        async move { Ok::<_, Error>(u64::try_from(runs.add()).unwrap()) }
    };
    let newest = call(&engine, 1).on_stale(OnStale::Replay);
    let (answer, outcome) = newest.run_detailed(body).await;
    assert_eq!((answer, runs.count()), (Ok(2), 0));
    assert_eq!(store.reserves() - before, 1);
    assert_eq!((outcome.how, outcome.recorded), (How::Stale, true));
    assert!(outcome.completed_at.is_some());
}

#[tokio::test]
async fn a_newest_answer_that_is_not_kept_is_not_replayable() {
    let engine = memory().await;
    let lost = call(&engine, 2).run(async { Ok::<_, Error>(Some(())) });
    assert_eq!(lost.await, Ok(Some(())), "the first caller has its own");
    let newest = call(&engine, 1).on_stale(OnStale::Replay);
    let told = newest.run(async { Ok::<_, Error>(Some(())) }).await;
    assert!(matches!(told, Err(Error::NotReplayable { .. })), "{told:?}");
    let told = call(&engine, 1)
        .run(async { Ok::<_, Error>(Some(())) })
        .await;
    assert_eq!(told, Err(stale(None)));
}

/// Two callers of one version share a flight; their choices differ.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_one_stale_version_each_get_what_they_chose() {
    let held = std::sync::Arc::new(tokio::sync::Notify::new());
    let store = Faulty::default();
    let engine = engine(store.clone()).await;
    assert_eq!(apply(&engine, 2).await, Ok(2));
    for first in [OnStale::Replay, OnStale::Error] {
        let second = match first {
            OnStale::Error => OnStale::Replay,
            OnStale::Replay => OnStale::Error,
        };
        store.clone().on_reserve([Fault::HoldReply(held.clone())]);
        let begin = |choice| {
            let call = call(&engine, 1).on_stale(choice);
            tokio::spawn(call.run(async { Ok::<u64, Error>(1) }))
        };
        let before = store.reserves();
        let lead = begin(first);
        until(|| store.reserves() == before + 1).await;
        let follower = begin(second);
        until(|| engine.stats().waiters == 1).await;
        held.notify_one();
        for (choice, told) in [(first, lead), (second, follower)] {
            let expected = match choice {
                OnStale::Error => Err(stale(Some(2))),
                OnStale::Replay => Ok(2),
            };
            assert_eq!(told.await.unwrap(), expected, "{choice:?} beside {first:?}");
        }
    }
}

#[tokio::test]
async fn a_stale_inner_call_is_an_answer_like_any_other() {
    let (engine, runs) = (memory().await, Runs::default());
    assert_eq!(apply(&engine, 2).await, Ok(2));
    for _ in 0..2 {
        let (inner, runs) = (engine.clone(), runs.clone());
        let outer = engine.call("version.outer", &1, DAY);
        let told = outer.run(async move {
            runs.add();
            apply(&inner, 1).await
        });
        assert_eq!(told.await, Err(stale(Some(2))), "recorded, and replayed");
    }
    assert_eq!(runs.count(), 1);
}

/// A holder that comes back after a newer version took over.
async fn superseded(on_stale: OnStale) -> (Result<u64, Error>, How) {
    const LEASE: Duration = Duration::from_secs(3_600);
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let build = || {
        let builder = Engine::builder(store.clone()).lease(LEASE).max_run(LEASE);
        async { builder.grace(Duration::ZERO).build().await.unwrap() }
    };
    let (slow, quick) = (build().await, build().await);
    let (open, started, body) = gated(Ok(1));
    let zombie = call(&slow, 1).on_stale(on_stale).run_detailed(body);
    let zombie = tokio::spawn(zombie);
    started.await.unwrap();
    clock.advance(LEASE * 2);
    let refused = apply(&quick, 2).await.unwrap_err();
    let reason = UnknownReason::Lapsed;
    assert!(
        matches!(&refused, Error::UnknownOutcome { reason: why, .. } if *why == reason),
        "{refused:?}"
    );
    let taker = call(&quick, 2).on_unknown(OnUnknown::Rerun);
    assert_eq!(taker.run(async { Ok::<u64, Error>(2) }).await, Ok(2));
    open.send(()).unwrap();
    let (answer, outcome) = zombie.await.unwrap();
    (answer, outcome.how)
}

#[tokio::test]
async fn a_holder_that_a_newer_version_replaced_is_never_told_that_it_did_not_run() {
    let told = superseded(OnStale::Error).await;
    assert_eq!(told, (Err(Error::Superseded), How::Refused));
    let told = superseded(OnStale::Replay).await;
    assert_eq!(told, (Ok(2), How::Stale), "never its own value");
}

#[tokio::test]
async fn on_stale_without_a_version_is_refused() {
    let engine = memory().await;
    let call = engine.call("version", &1, DAY).on_stale(OnStale::Error);
    let told = call.run(async { Ok::<u64, Error>(1) }).await.unwrap_err();
    assert!(matches!(told, Error::Misuse { .. }), "{told:?}");
    assert!(told.to_string().contains("the body did not run"), "{told}");
}

#[tokio::test]
async fn the_applied_version_reads_back_and_is_not_shown() {
    let error = stale(Some(0x0102_0304_0506_0708));
    let text = serde_json::to_string(&error).unwrap();
    assert_eq!(serde_json::from_str::<Error>(&text).unwrap(), error);
    let shown = format!("{error:?}");
    assert_eq!(shown, "Stale { applied: Some(VersionBytes(9 bytes)) }");
    assert!(!error.to_string().contains(char::is_numeric), "{error}");
    let long = serde_json::json!({"Stale": {"applied": vec![0; 33]}});
    let told = serde_json::from_value::<Error>(long).unwrap_err();
    assert!(told.to_string().contains("at most 32 bytes"), "{told}");
    assert!(error.is_stale() && !error.is_retryable());
}
