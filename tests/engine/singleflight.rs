//! Callers of one key in one process share a trip to the store, and nobody is
//! stranded when the one that leads goes away.

use std::sync::Arc;
use std::time::Duration;

use idem::admin::Settled;
use idem::{Engine, Error, How, OnInProgress, Stats, observe};
use tokio::sync::{Notify, oneshot};

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, engine, idle, until};

type Answer = Result<usize, Error>;

async fn waiters(engine: &Engine, count: usize) {
    until(|| engine.stats().waiters >= count).await;
}

#[tokio::test]
async fn sixty_four_callers_make_one_run_and_two_store_operations() {
    let store = Faulty::default();
    let engine = engine(store.clone()).await;
    let runs = Runs::default();
    let (open, gate) = oneshot::channel::<()>();
    let mut gate = Some(gate);
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let (runs, gate) = (runs.clone(), gate.take());
            tokio::spawn(observe(engine.call("flight.one", &1, DAY).run(
                async move {
                    if let Some(gate) = gate {
                        gate.await.ok();
                    }
                    Ok::<_, Error>(runs.add())
                },
            )))
        })
        .collect();
    waiters(&engine, 63).await;
    open.send(()).unwrap();
    let mut coalesced = 0;
    for call in calls {
        let (answer, outcome) = call.await.unwrap();
        assert_eq!(answer, Ok(1));
        coalesced += usize::from(outcome.unwrap().how == How::Coalesced);
    }
    assert_eq!(coalesced, 63);
    assert_eq!(runs.count(), 1);
    assert_eq!((store.reserves(), store.ends()), (1, 1));
    idle(&engine).await;
    assert_eq!(engine.stats(), Stats::default());
}

/// A lead that has the answer in hand does not pass it on to who begins after it was
/// forgotten.
#[tokio::test]
async fn a_call_that_begins_after_a_forget_joins_no_flight_from_before() {
    let reply = Arc::new(Notify::new());
    let store = Faulty::default();
    let runs = Runs::default();
    let call = |engine: &Engine| {
        let runs = runs.clone();
        let call = engine.call("flight.forgotten", &1, DAY);
        observe(call.run(async move { Ok::<_, Error>(runs.add()) }))
    };
    let (first, _) = call(&engine(store.clone()).await).await;
    assert_eq!(first, Ok(1));
    let held = store.on_reserve([Fault::HoldReply(Arc::clone(&reply))]);
    let engine = engine(held.clone()).await;
    let lead = tokio::spawn(call(&engine));
    until(|| held.reserves() == 2).await;

    let record = engine.record("flight.forgotten").key(&1);
    let forgotten = record.forget("ada", "a test").await;
    assert_eq!(forgotten, Ok(Settled::Done));
    assert_eq!(call(&engine).await.0, Ok(2), "it asks, and runs");
    reply.notify_one();
    assert_eq!(lead.await.unwrap().0, Ok(1), "it was told before");
    idle(&engine).await;
    assert_eq!(engine.stats(), Stats::default());
}

#[tokio::test]
async fn another_payload_goes_to_the_store_never_to_the_flight() {
    let engine = engine(Faulty::default()).await;
    let (open, gate) = oneshot::channel::<()>();
    let first = tokio::spawn(
        engine
            .call("flight.payload", &1, DAY)
            .payload(&1)
            .run(async move {
                gate.await.ok();
                Answer::Ok(1)
            }),
    );
    until(|| engine.stats().attempts != 0).await;
    let other = engine.call("flight.payload", &1, DAY).payload(&2);
    let answer: Answer = other.run(async { panic!("a second run") }).await;
    assert!(answer.unwrap_err().is_mismatch());
    open.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn when_the_leader_panics_followers_ask_the_store() {
    let engine = engine(Faulty::default()).await;
    let (open, gate) = oneshot::channel::<()>();
    let leader = tokio::spawn(engine.call("flight.panic", &1, DAY).run(async move {
        gate.await.ok();
        if engine_is_up() {
            panic!("on purpose");
        }
        Answer::Ok(1)
    }));
    until(|| engine.stats().attempts != 0).await;
    let followers: Vec<_> = (0..8)
        .map(|_| {
            let call = engine.call("flight.panic", &1, DAY);
            tokio::spawn(call.run(async { Answer::Ok(2) }))
        })
        .collect();
    waiters(&engine, 8).await;
    open.send(()).unwrap();
    assert!(leader.await.unwrap_err().is_panic());
    for follower in followers {
        let answer = follower.await.unwrap();
        assert!(answer.unwrap_err().is_unknown_outcome());
    }
    idle(&engine).await;
}

fn engine_is_up() -> bool {
    true
}

#[tokio::test]
async fn when_the_leader_is_dropped_before_it_runs_a_follower_takes_its_place() {
    let held = Arc::new(Notify::new());
    let store = Faulty::default().on_reserve([Fault::HoldUntil(held.clone())]);
    let engine = engine(store).await;
    let runs = Runs::default();
    let call = |runs: &Runs| {
        let runs = runs.clone();
        tokio::spawn(
            engine
                .call("flight.dropped", &1, DAY)
                .run(async move { Answer::Ok(runs.add()) }),
        )
    };
    let leader = call(&runs);
    until(|| engine.stats().flights != 0).await;
    let follower = call(&runs);
    waiters(&engine, 1).await;
    leader.abort();
    leader.await.unwrap_err();
    held.notify_one();
    assert_eq!(follower.await.unwrap(), Ok(1));
    assert_eq!(runs.count(), 1);
    idle(&engine).await;
}

#[tokio::test(start_paused = true)]
async fn each_follower_keeps_its_own_deadline() {
    let engine = engine(Faulty::default()).await;
    let (_open, gate) = oneshot::channel::<()>();
    let _leader = tokio::spawn(engine.call("flight.deadline", &1, DAY).run(async move {
        gate.await.ok();
        Answer::Ok(1)
    }));
    until(|| engine.stats().attempts != 0).await;
    for bound in [1, 7, 70] {
        let bound = Duration::from_secs(bound);
        let started = tokio::time::Instant::now();
        let answer: Answer = engine
            .call("flight.deadline", &1, DAY)
            .on_in_progress(OnInProgress::Wait(bound))
            .run(async { panic!("a second run") })
            .await;
        assert!(answer.unwrap_err().is_in_progress());
        let waited = started.elapsed();
        assert!(waited >= bound && waited < bound + Duration::from_secs(2));
    }
}

#[tokio::test]
async fn above_the_cap_of_waiters_callers_are_told_at_once() {
    let engine = Engine::builder(Faulty::default())
        .max_waiters(2)
        .build()
        .await
        .unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let leader = tokio::spawn(engine.call("flight.cap", &1, DAY).run(async move {
        gate.await.ok();
        Answer::Ok(1)
    }));
    until(|| engine.stats().attempts != 0).await;
    let call = || {
        engine
            .call("flight.cap", &1, DAY)
            .run(async { Answer::Ok(2) })
    };
    let waiting = [tokio::spawn(call()), tokio::spawn(call())];
    waiters(&engine, 2).await;
    assert!(call().await.unwrap_err().is_in_progress());
    open.send(()).unwrap();
    assert_eq!(leader.await.unwrap(), Ok(1));
    for call in waiting {
        assert_eq!(call.await.unwrap(), Ok(1));
    }
}

#[test]
fn a_flight_spans_runtimes_and_outlives_the_leaders() {
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    };
    let (first, second) = (runtime(), runtime());
    let engine = first.block_on(engine(Faulty::default()));
    let (start, started) = std::sync::mpsc::channel();
    let leader = engine.call("flight.runtimes", &1, DAY).run(async move {
        start.send(()).unwrap();
        std::future::pending::<Answer>().await
    });
    let _leader = first.spawn(leader);
    started.recv().unwrap();
    let call = engine.call("flight.runtimes", &1, DAY);
    let follower = second.spawn(call.run(async { Answer::Ok(2) }));
    second.block_on(waiters(&engine, 1));
    first.shutdown_timeout(Duration::from_secs(5));
    let answer = second.block_on(follower).unwrap();
    assert!(answer.unwrap_err().is_unknown_outcome());
}
