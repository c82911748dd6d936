//! What a body may ask about its attempt.

use std::time::Duration;

use idem::store::MemoryStore;
use idem::testing::ManualClock;
use idem::{Context, Engine, Error, OnUnknown, context};
use tokio::sync::oneshot;

use crate::{DAY, memory};

#[tokio::test]
async fn there_is_none_outside_of_a_body() {
    assert_eq!(context().unwrap_err(), Error::NoContext);
}

#[tokio::test]
async fn a_spawned_task_has_none_unless_it_is_given_one() {
    let engine = memory().await;
    let answer: Result<bool, Error> = engine
        .call("context.spawn", &1, DAY)
        .run(async {
            let here = context()?;
            let bare = tokio::spawn(async { context().is_err() });
            let given = here.clone();
            let carried = tokio::spawn(here.scope(async move {
                context().is_ok_and(|context| context.record_id() == given.record_id())
            }));
            Ok(bare.await.unwrap() && carried.await.unwrap())
        })
        .await;
    assert_eq!(answer, Ok(true));
}

#[tokio::test]
async fn downstream_keys_are_the_same_in_every_attempt_and_differ_by_label_and_record() {
    let engine = memory().await;
    let keys = async |order: u32, fails: bool| {
        let answer: Result<(String, String, u32, bool), Error> = engine
            .call("context.keys", &order, DAY)
            .on_error(idem::on_error::Unknown)
            .on_unknown(OnUnknown::Rerun)
            .run(async move {
                let context = context()?;
                let keys = (
                    context.downstream_key("a"),
                    context.downstream_key("b"),
                    context.attempt(),
                    context.is_reattempt(),
                );
                // Carried out by the text of the error.
                if fails {
                    return Err(Error::Failed { message: keys.0 });
                }
                Ok(keys)
            })
            .await;
        answer
    };
    let Err(Error::Failed { message: first }) = keys(1, true).await else {
        panic!("the first attempt fails");
    };
    let (a, b, attempt, again) = keys(1, false).await.unwrap();
    assert_eq!(a, first);
    assert_ne!(a, b);
    assert_eq!((attempt, again), (2, true));
    assert_eq!(a.len(), 64);
    let (other, _, attempt, again) = keys(2, false).await.unwrap();
    assert_ne!(a, other);
    assert_eq!((attempt, again), (1, false));
}

/// Runs a body that waits, and returns its context and what lets it go on.
async fn running(engine: &Engine) -> (Context, oneshot::Sender<()>) {
    let (tell, told) = oneshot::channel();
    let (open, gate) = oneshot::channel();
    tokio::spawn(engine.call("context.held", &1, DAY).run(async move {
        tell.send(context()?).ok();
        gate.await.ok();
        Ok::<_, Error>(())
    }));
    (told.await.unwrap(), open)
}

#[tokio::test]
async fn ensure_held_says_when_another_attempt_took_over() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let build = || {
        let lease = Duration::from_secs(600);
        Engine::builder(store.clone()).lease(lease).build()
    };
    let engine = build().await.unwrap();
    let (holder, _open) = running(&engine).await;
    assert_eq!(holder.ensure_held().await, Ok(()));
    let fence = holder.fence();

    // Lapsed, and nobody has taken over: it may still be renewed.
    clock.advance(Duration::from_secs(1_000));
    assert_eq!(holder.ensure_held().await, Ok(()));

    clock.advance(Duration::from_secs(1_000));
    let other = build().await.unwrap();
    let taken: Result<(), Error> = other
        .call("context.held", &1, DAY)
        .on_unknown(OnUnknown::Rerun)
        .run(async move {
            assert!(context()?.fence() > fence);
            Ok(())
        })
        .await;
    assert_eq!(taken, Ok(()));
    assert_eq!(holder.ensure_held().await, Err(Error::Superseded));
}

#[tokio::test]
async fn ensure_held_fails_from_the_holders_own_deadline_on() {
    let clock = ManualClock::new();
    let engine = Engine::builder(MemoryStore::new())
        .lease(Duration::from_secs(600))
        .clock(clock.clone())
        .build()
        .await
        .unwrap();
    let (holder, _open) = running(&engine).await;
    assert_eq!(holder.ensure_held().await, Ok(()));
    // The renewal thread sleeps in real time, so nothing renews meanwhile.
    clock.advance(Duration::from_secs(600));
    assert_eq!(holder.ensure_held().await, Err(Error::Superseded));
}

#[tokio::test]
async fn a_call_without_a_key_has_none_not_even_its_callers() {
    #[idem::idempotent(
        key = order, name = "context.unprotected", ttl = "1h", engine = engine,
        on_missing_key = run
    )]
    async fn unprotected(engine: Engine, order: Option<u32>) -> Result<bool, Error> {
        Ok(context().is_ok())
    }
    let engine = memory().await;
    let inside = engine.clone();
    let call = engine.call("context.protected", &1, DAY);
    let answer = call.run(async move {
        let here = context()?;
        let without = unprotected(inside.clone(), None).await?;
        let with = unprotected(inside, Some(1)).await?;
        Ok::<_, Error>((without, with, context()?.record_id() == here.record_id()))
    });
    assert_eq!(answer.await, Ok((false, true, true)));
}
