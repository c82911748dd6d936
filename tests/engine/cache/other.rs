//! What the cache has no part in: other calls of the key, and questions that are
//! for the store.

use std::time::Duration;

use idem::admin::Settled;
use idem::sqlx::{Connection as _, SqliteConnection};
use idem::store::{MemoryStore, SqliteStore};
use idem::{Engine, Error, How, OnInProgress, TombstoneReason};
use tokio::sync::oneshot;

use super::{NAME, builder, cached, charge, forget, plain};
use crate::faulty::Faulty;
use crate::{DAY, Runs, engine, until};

#[tokio::test]
async fn another_payload_of_the_key_is_a_mismatch_and_leaves_the_answer_there() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let engine = cached(store.clone()).await;
    charge(&engine, &runs).await.unwrap();
    let other = plain(&engine)
        .payload(&2)
        .run(async { Ok::<usize, Error>(0) });
    assert!(other.await.unwrap_err().is_mismatch());
    assert_eq!(store.reserves(), 2);
    assert_eq!(charge(&engine, &runs).await, Ok(1));
    assert_eq!(store.reserves(), 2);
}

#[tokio::test]
async fn another_scope_or_key_is_another_answer() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let engine = cached(store).await;
    assert_eq!(charge(&engine, &runs).await, Ok(1));
    let scoped = plain(&engine).scope(&"tenant");
    assert_eq!(scoped.run(async { Ok::<usize, Error>(7) }).await, Ok(7));
    let keyed = engine.call(NAME, &2, DAY);
    assert_eq!(keyed.run(async { Ok::<usize, Error>(8) }).await, Ok(8));
}

#[tokio::test]
async fn what_does_not_decode_is_told_as_without_a_cache_each_time() {
    let store = MemoryStore::new();
    let old = engine(store.clone()).await;
    let first = old
        .call("deploy", &1, DAY)
        .run(async { Ok::<_, Error>(1_u32) });
    assert_eq!(first.await, Ok(1));
    let store = Faulty::behind(store);
    let new = cached(store.clone()).await;
    for _ in 0..3 {
        let call = new.call("deploy", &1, DAY);
        let answer: Result<String, Error> = call.run(async { Ok("new".to_owned()) }).await;
        let reason = TombstoneReason::NotDecodable;
        assert_eq!(answer, Err(Error::NotReplayable { reason }));
    }
    assert_eq!(store.reserves(), 1);
}

#[tokio::test]
async fn what_has_no_answer_is_asked_for_each_time() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let engine = cached(store.clone()).await;
    // A tombstone.
    for asks in 1..4 {
        let call = engine.call("nan", &1, DAY);
        call.run(async { Ok::<_, Error>(f64::NAN) }).await.ok();
        assert_eq!(store.reserves(), asks);
    }
    // An unknown outcome.
    for asks in 4..7 {
        let call = engine
            .call("unknown", &1, DAY)
            .on_error(idem::on_error::Unknown);
        let failed = Error::Failed {
            message: String::new(),
        };
        call.run(async { Err::<u32, _>(failed) }).await.unwrap_err();
        assert_eq!(store.reserves(), asks);
    }
    // An attempt that runs.
    let (go, gate) = oneshot::channel::<()>();
    let body = runs.clone();
    let first = tokio::spawn(plain(&engine).run(async move {
        gate.await.ok();
        Ok::<_, Error>(body.add())
    }));
    until(|| store.reserves() == 7).await;
    for asks in 8..10 {
        let call = plain(&engine).on_in_progress(OnInProgress::Reject);
        let answer = call.run(async { Ok::<usize, Error>(0) }).await;
        assert!(
            matches!(answer, Err(Error::InProgress { .. })),
            "{answer:?}"
        );
        assert_eq!(store.reserves(), asks);
    }
    go.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(1));
    assert_eq!(charge(&engine, &runs).await, Ok(1));
    assert_eq!(store.reserves(), 9);
}

#[tokio::test]
async fn calls_with_a_version_neither_use_it_nor_add_to_it() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let engine = cached(store.clone()).await;
    for asks in 1..4 {
        let call = plain(&engine).version(&1_u32);
        assert_eq!(call.run(async { Ok::<_, Error>(1_usize) }).await, Ok(1));
        assert_eq!(store.reserves(), asks);
    }
    // Without one, the store is asked the first time, since nothing was added.
    assert_eq!(charge(&engine, &runs).await, Ok(1));
    assert_eq!(charge(&engine, &runs).await, Ok(1));
    assert_eq!(store.reserves(), 4);
    let call = plain(&engine).version(&1_u32);
    assert_eq!(call.run(async { Ok::<_, Error>(2_usize) }).await, Ok(1));
    assert_eq!(store.reserves(), 5);
}

async fn in_transaction(engine: &Engine, conn: &mut SqliteConnection) -> usize {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let call = plain(engine).in_transaction(&mut tx);
    let answer: Result<usize, Error> = call.run(async |_| Ok(70)).await;
    tx.commit().await.unwrap();
    answer.unwrap()
}

#[tokio::test]
async fn calls_in_their_callers_transaction_neither_use_it_nor_add_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let (engine, runs) = (cached(store.clone()).await, Runs::default());
    let other = crate::engine(store).await;
    let url = format!("sqlite://{}", path.display());
    let conn = &mut SqliteConnection::connect(&url).await.unwrap();
    assert_eq!(charge(&engine, &runs).await, Ok(1));
    assert_eq!(in_transaction(&engine, conn).await, 1);
    // The cache does not know it, and the transaction does.
    assert_eq!(forget(&other).await, Ok(Settled::Done));
    assert_eq!(in_transaction(&engine, conn).await, 70);
    assert_eq!(forget(&engine).await, Ok(Settled::Done));
    assert_eq!(in_transaction(&engine, conn).await, 70);
    // Had it been added, this would be seen.
    assert_eq!(forget(&other).await, Ok(Settled::Done));
    assert_eq!(charge(&engine, &runs).await, Ok(2));
}

#[tokio::test]
async fn operators_are_shown_what_is_in_the_store() {
    let store = Faulty::default();
    let (engine, runs) = (cached(store.clone()).await, Runs::default());
    charge(&engine, &runs).await.unwrap();
    let record = engine.record(NAME).key(&1);
    for looks in 1..4 {
        assert!(record.get().await.unwrap().is_some());
        assert_eq!(store.looks(), looks);
    }
    assert_eq!(forget(&crate::engine(store).await).await, Ok(Settled::Done));
    assert_eq!(charge(&engine, &runs).await, Ok(1));
    let seen = record.get().await.unwrap().unwrap();
    assert!(seen.record.answer.is_none());
}

#[tokio::test]
async fn a_body_that_holds_the_key_is_refused_and_a_replay_clears_what_it_spoiled() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let engine = cached(store).await;
    // Another name, whose answer comes from the cache within a body.
    let inner = engine.clone();
    let inner = move || {
        let call = inner.call("cache.inner", &1, DAY);
        async move { call.run_detailed(async { Ok::<_, Error>(5) }).await }
    };
    inner().await.0.unwrap();
    let (held, body) = (engine.clone(), runs.clone());
    let outer = engine.call("cache.outer", &1, DAY).run(async move {
        body.add();
        let call = held.call("cache.outer", &1, DAY);
        let reentrant: Result<i32, Error> = call.run(async { Ok(0) }).await;
        assert_eq!(reentrant, Err(Error::Reentrant));
        let (answer, outcome) = inner().await;
        assert_eq!(outcome.how, How::Replayed);
        answer
    });
    assert_eq!(outer.await, Ok(5));
}

#[tokio::test]
async fn after_a_shutdown_nothing_is_replayed_from_memory() {
    let (engine, runs) = (cached(MemoryStore::new()).await, Runs::default());
    charge(&engine, &runs).await.unwrap();
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
    assert_eq!(charge(&engine, &runs).await, Err(Error::ShuttingDown));
}

#[tokio::test]
async fn a_hit_needs_no_store_and_no_task() {
    let (store, runs) = (Faulty::default(), Runs::default());
    let engine = cached(store.clone()).await;
    charge(&engine, &runs).await.unwrap();
    let call = charge(&engine, &runs);
    let mut call = std::pin::pin!(call);
    // Answered at its first poll.
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let answer = call.as_mut().poll(&mut context);
    assert_eq!(answer, std::task::Poll::Ready(Ok(1)));
    assert_eq!(
        (engine.stats(), store.reserves()),
        (idem::Stats::default(), 1)
    );
}

#[tokio::test]
async fn what_is_in_memory_is_bounded_and_not_shown() {
    let small = builder(MemoryStore::new()).cache(64 << 10);
    let engine = small.build().await.unwrap();
    for key in 0..1_000 {
        let call = engine.call("canary", &format!("canary-{key}"), DAY);
        let body = async { Ok::<_, Error>("canary".repeat(20)) };
        call.run(body).await.unwrap();
    }
    let shown = format!("{engine:?}");
    let (_, rest) = shown.split_once("cache: Some(Cache { len: ").unwrap();
    let (rest, _) = rest.split_once(')').unwrap();
    let (len, rest) = rest.split_once(", weight: ").unwrap();
    let weight = rest.strip_suffix(", .. }").expect("nothing more is shown");
    let weight: usize = weight.parse().unwrap();
    let len: usize = len.parse().unwrap();
    assert!(weight <= 64 << 10 && weight > 32 << 10, "{weight}");
    assert!(len < 110 && len > 50, "{len}");
}
