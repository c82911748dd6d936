//! A change by hand meets calls that are under way: none of them puts a
//! forgotten answer back.

use std::sync::Arc;

use idem::admin::Settled;
use idem::{Disposition, Engine, Error, OnInProgress, on_error};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{cached, charge, forget, plain};
use crate::faulty::{Fault, Faulty};
use crate::{Runs, engine, idle, until};

/// A store in which an answer is recorded, an engine that has seen nothing of
/// it, and one without a cache.
struct Bench {
    store: Faulty,
    engine: Engine,
    other: Engine,
    runs: Runs,
}

async fn bench() -> Bench {
    let (store, runs) = (Faulty::default(), Runs::default());
    let other = engine(store.clone()).await;
    assert_eq!(charge(&other, &runs).await, Ok(1));
    Bench {
        engine: cached(store.clone()).await,
        store,
        other,
        runs,
    }
}

impl Bench {
    /// Begins a call, which has asked the store and has no reply yet.
    async fn asked(&self) -> (Arc<Notify>, JoinHandle<Result<usize, Error>>) {
        let reply = Arc::new(Notify::new());
        let hold = Fault::HoldReply(Arc::clone(&reply));
        let store = self.store.clone().on_reserve([hold]);
        let asks = store.reserves() + 1;
        let (engine, runs) = (self.engine.clone(), self.runs.clone());
        // It neither joins a flight nor leads one.
        let call = plain(&engine).on_in_progress(OnInProgress::Reject);
        let call = tokio::spawn(call.run(async move { Ok(runs.add()) }));
        until(|| store.reserves() == asks).await;
        (reply, call)
    }

    /// Begins to forget, and stops before the store sees it.
    async fn forgetting(&self) -> (Arc<Notify>, JoinHandle<Result<Settled, Error>>) {
        let go = Arc::new(Notify::new());
        let store = self.store.clone();
        let store = store.on_settle([Fault::HoldUntil(Arc::clone(&go))]);
        let engine = self.engine.clone();
        let forgotten = tokio::spawn(async move { forget(&engine).await });
        until(|| store.settles() == 1).await;
        (go, forgotten)
    }

    async fn charge(&self) -> Result<usize, Error> {
        charge(&self.engine, &self.runs).await
    }
}

#[tokio::test]
async fn a_replay_that_was_asked_for_before_a_forget_and_answered_after_it_is_not_kept() {
    let bench = bench().await;
    let (reply, call) = bench.asked().await;
    assert_eq!(forget(&bench.engine).await, Ok(Settled::Done));
    reply.notify_one();
    assert_eq!(call.await.unwrap(), Ok(1));
    assert_eq!(bench.charge().await, Ok(2));
}

#[tokio::test]
async fn a_replay_that_was_asked_for_and_answered_while_it_is_forgotten_is_not_kept() {
    let bench = bench().await;
    let (go, forgotten) = bench.forgetting().await;
    assert_eq!(bench.charge().await, Ok(1));
    go.notify_one();
    assert_eq!(forgotten.await.unwrap(), Ok(Settled::Done));
    assert_eq!(bench.charge().await, Ok(2));
}

#[tokio::test]
async fn a_replay_that_was_asked_for_while_it_is_forgotten_and_answered_later_is_not_kept() {
    let bench = bench().await;
    let (go, forgotten) = bench.forgetting().await;
    let (reply, call) = bench.asked().await;
    go.notify_one();
    assert_eq!(forgotten.await.unwrap(), Ok(Settled::Done));
    reply.notify_one();
    assert_eq!(call.await.unwrap(), Ok(1));
    assert_eq!(bench.charge().await, Ok(2));
}

#[tokio::test]
async fn what_was_in_the_cache_is_gone_while_it_is_forgotten() {
    let bench = bench().await;
    assert_eq!(bench.charge().await, Ok(1));
    let asks = bench.store.reserves();
    assert_eq!(bench.charge().await, Ok(1));
    assert_eq!(bench.store.reserves(), asks, "it is in the cache");
    // The store has forgotten it, and its reply is under way.
    let reply = Arc::new(Notify::new());
    let hold = Fault::HoldReply(Arc::clone(&reply));
    let store = bench.store.clone().on_settle([hold]);
    let engine = bench.engine.clone();
    let forgotten = tokio::spawn(async move { forget(&engine).await });
    until(|| store.settles() == 1).await;
    assert_eq!(bench.charge().await, Ok(2));
    reply.notify_one();
    assert_eq!(forgotten.await.unwrap(), Ok(Settled::Done));
    assert_eq!(bench.charge().await, Ok(2));
}

#[tokio::test]
async fn an_answer_that_was_forgotten_before_its_completion_was_confirmed_is_not_kept() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let reply = Arc::new(Notify::new());
    let store = store.on_end([Fault::HoldReply(Arc::clone(&reply))]);
    let engine = cached(store.clone()).await;
    let (first, body) = (engine.clone(), runs.clone());
    let first = tokio::spawn(async move { charge(&first, &body).await });
    until(|| store.ends() == 1).await;
    assert_eq!(forget(&engine).await, Ok(Settled::Done));
    reply.notify_one();
    assert_eq!(first.await.unwrap(), Ok(1));
    idle(&engine).await;
    assert_eq!(charge(&engine, &runs).await, Ok(2));
}

#[tokio::test]
async fn the_slower_of_two_replies_does_not_replace_the_newer_answer() {
    let bench = bench().await;
    let (reply, call) = bench.asked().await;
    // Elsewhere it is forgotten, and runs once more.
    assert_eq!(forget(&bench.other).await, Ok(Settled::Done));
    assert_eq!(charge(&bench.other, &bench.runs).await, Ok(2));
    assert_eq!(bench.charge().await, Ok(2));
    reply.notify_one();
    assert_eq!(call.await.unwrap(), Ok(1));
    let asks = bench.store.reserves();
    assert_eq!(bench.charge().await, Ok(2));
    assert_eq!(bench.store.reserves(), asks, "it is in the cache");
}

#[tokio::test]
async fn a_key_that_runs_anew_has_no_older_answer() {
    let bench = bench().await;
    assert_eq!(bench.charge().await, Ok(1));
    assert_eq!(forget(&bench.other).await, Ok(Settled::Done));
    // With another payload, so that the cache has no answer to it.
    let failed = Error::Failed {
        message: "timed out".to_owned(),
    };
    let call = plain(&bench.engine).payload(&2);
    let call = call.on_error(on_error::Classify(|_: &Error| Disposition::Release));
    let answer = call.run(async { Err::<usize, _>(failed) }).await;
    answer.unwrap_err();
    assert_eq!(bench.charge().await, Ok(2));
}

/// What an answer in the cache does not hide: a change elsewhere is not seen
/// until the answer is too old.
#[tokio::test]
async fn a_forget_through_another_engine_is_seen_when_the_answer_is_too_old() {
    let (clock, store) = super::manual();
    let runs = Runs::default();
    let here = super::timed(store.clone(), clock.clone()).await;
    let there = super::timed(store, clock.clone()).await;
    assert_eq!(charge(&here, &runs).await, Ok(1));
    assert_eq!(charge(&there, &runs).await, Ok(1));
    assert_eq!(forget(&there).await, Ok(Settled::Done));
    assert_eq!(charge(&there, &runs).await, Ok(2));
    assert_eq!(charge(&here, &runs).await, Ok(1));
    clock.advance(super::HOUR);
    assert_eq!(charge(&here, &runs).await, Ok(2));
}
