//! The caller's future is dropped after every number of polls from none until
//! it ends: never two runs, nothing left behind, and no runtime needed to drop.

use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use idem::store::{MemoryStore, SqliteStore, Store};
use idem::{Engine, Error, Stats, idempotent};

use crate::polled::{Bell, Polled, polled};
use crate::{Runs, idle, until};

const LEASE: Duration = Duration::from_millis(300);
const GRACE: Duration = Duration::from_millis(50);

/// Goes back to the scheduler a few times, so that there are polls to drop at.
async fn work(runs: Runs, order: usize) -> Result<usize, Error> {
    runs.add();
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    Ok(order)
}

#[idempotent(key = order, name = "cancel.finish", ttl = "1h", engine = engine)]
async fn finish(engine: Engine, runs: Runs, order: usize) -> Result<usize, Error> {
    work(runs, order).await
}

#[idempotent(
    key = order, name = "cancel.abandon", ttl = "1h", engine = engine, on_cancel = abandon
)]
async fn abandon(engine: Engine, runs: Runs, order: usize) -> Result<usize, Error> {
    work(runs, order).await
}

async fn build(store: impl Store) -> Engine {
    Engine::builder(store)
        .lease(LEASE)
        .grace(GRACE)
        .build()
        .await
        .unwrap()
}

/// Drops `call` after every number of polls, on keys from `first` on, and
/// returns how many there were.
async fn drop_at_every_poll<F>(
    engine: &Engine,
    call: impl Fn(Engine, Runs, usize) -> F,
    first: usize,
    finishes: bool,
) -> usize
where
    F: Future<Output = Result<usize, Error>> + Send + 'static,
{
    for polls in 0.. {
        let (runs, key) = (Runs::default(), first + polls);
        let call = || call(engine.clone(), runs.clone(), key);
        if let Polled::Ended(answer) = polled(call(), polls).await {
            assert_eq!(answer, Ok(key));
            assert_eq!(runs.count(), 1);
            idle(engine).await;
            return polls;
        }
        // The next caller waits while the record is in progress.
        let second = call().await;
        let third = call().await;
        assert_eq!(runs.count(), 1, "after {polls} polls: {second:?}");
        assert_eq!(second, third, "after {polls} polls");
        match second {
            Ok(answer) => assert_eq!(answer, key),
            Err(Error::UnknownOutcome { .. }) if !finishes => {}
            Err(other) => panic!("after {polls} polls: {other:?}"),
        }
        idle(engine).await;
    }
    unreachable!("the loop ends when the call does")
}

async fn both_modes(engine: Engine) {
    // Where a poll ends differs from round to round: the store answers from
    // another thread.
    for round in 0..5 {
        let first = round * 1_000;
        assert!(drop_at_every_poll(&engine, finish, first, true).await >= 1);
        // The body alone takes four.
        assert!(drop_at_every_poll(&engine, abandon, first, false).await >= 4);
    }
    assert_eq!(engine.stats(), Stats::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_at_every_poll_on_the_memory_store() {
    both_modes(build(MemoryStore::new()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_at_every_poll_on_the_sqlite_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db"))
        .await
        .unwrap();
    both_modes(build(store.clone()).await).await;
    // The pool takes a connection back in a task of its own.
    until(|| {
        let (open, idle) = store.reader_connections();
        open >= 1 && open == idle
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_and_timed_out_callers_run_nothing_twice() {
    let engine = build(MemoryStore::new()).await;
    for order in 0..200 {
        let runs = Runs::default();
        let call = tokio::spawn(finish(engine.clone(), runs.clone(), order));
        if order % 2 == 0 {
            call.abort();
        } else {
            tokio::time::timeout(Duration::from_micros(u64::try_from(order).unwrap()), call)
                .await
                .ok();
        }
        let answer = finish(engine.clone(), runs.clone(), order).await;
        assert_eq!(answer, Ok(order));
        assert_eq!(runs.count(), 1);
    }
    idle(&engine).await;
}

#[test]
fn a_call_outside_of_any_runtime_uses_the_engines() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let engine = runtime.block_on(build(MemoryStore::new()));
    let runs = Runs::default();
    let (ring, rung) = mpsc::channel();
    let waker = Waker::from(Arc::new(Bell(ring)));
    let mut call = Box::pin(finish(engine, runs.clone(), 7));
    let answer = loop {
        match call.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => break answer,
            Poll::Pending => rung.recv_timeout(Duration::from_secs(20)).unwrap(),
        }
    };
    assert_eq!(answer, Ok(7));
    assert_eq!(runs.count(), 1);
}

#[test]
fn a_runtime_that_ends_during_the_body_leaves_the_outcome_unknown() {
    let store = MemoryStore::new();
    let runs = Runs::default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let engine = runtime.block_on(build(store.clone()));
    let (started, starting) = mpsc::channel();
    let body = runs.clone();
    let call = engine.call("cancel.ends", &1, crate::DAY).run(async move {
        body.add();
        started.send(()).unwrap();
        std::future::pending::<Result<(), Error>>().await
    });
    let caller = runtime.spawn(call);
    starting.recv_timeout(Duration::from_secs(20)).unwrap();
    runtime.shutdown_timeout(Duration::from_secs(5));
    drop(caller);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = build(store).await;
        let answer: Result<(), Error> = engine
            .call("cancel.ends", &1, crate::DAY)
            .run(async { panic!("a second run") })
            .await;
        assert!(answer.unwrap_err().is_unknown_outcome());
    });
    assert_eq!(runs.count(), 1);
}
