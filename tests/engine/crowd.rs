//! A thousand callers of one key, ten thousand keys at once, and a body that
//! never ends: nothing is left behind.

use std::time::Duration;

use idem::store::MemoryStore;
use idem::{Engine, Error, How, UnknownReason, observe};
use tokio::sync::{oneshot, watch};

use crate::faulty::Faulty;
use crate::log::Log;
use crate::{DAY, Runs, engine, idle, memory, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_callers_of_one_key_make_one_run() {
    let store = Faulty::default();
    let engine = engine(store.clone()).await;
    let runs = Runs::default();
    let (open, gate) = watch::channel(false);
    let calls: Vec<_> = (0..1_000)
        .map(|_| {
            let (runs, mut gate) = (runs.clone(), gate.clone());
            let call = engine.call("crowd.one", &1, DAY).run(async move {
                gate.wait_for(|open| *open).await.ok();
                Ok::<_, Error>(runs.add())
            });
            tokio::spawn(observe(call))
        })
        .collect();
    until(|| engine.stats().waiters == 999).await;
    open.send(true).unwrap();
    let mut coalesced = 0;
    for call in calls {
        let (answer, outcome) = call.await.unwrap();
        assert_eq!(answer, Ok(1));
        coalesced += usize::from(outcome.unwrap().how == How::Coalesced);
    }
    assert_eq!((coalesced, runs.count()), (999, 1));
    assert_eq!((store.reserves(), store.ends()), (1, 1));
    idle(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_keys_are_in_flight_at_once_and_nothing_is_left() {
    const KEYS: usize = 10_000;
    let engine = memory().await;
    let runs = Runs::default();
    let (open, gate) = watch::channel(false);
    let calls: Vec<_> = (0..KEYS)
        .map(|key| {
            let (runs, mut gate) = (runs.clone(), gate.clone());
            let call = engine.call("crowd.many", &key, DAY).run(async move {
                runs.add();
                gate.wait_for(|open| *open).await.ok();
                Ok::<_, Error>(key)
            });
            tokio::spawn(call)
        })
        .collect();
    until(|| runs.count() == KEYS).await;
    assert_eq!(engine.stats().attempts, KEYS);
    open.send(true).unwrap();
    for (key, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), Ok(key));
    }
    assert_eq!(runs.count(), KEYS);
    idle(&engine).await;
}

#[tokio::test]
async fn a_body_that_hangs_lapses_after_max_run_and_is_warned_of_once() {
    const LEASE: Duration = Duration::from_millis(100);
    let log = Log::start().await;
    let warnings = |operation: &str| {
        let text = log.text();
        let lines = text.lines().filter(|line| line.contains("WARN"));
        let lines = lines.filter(|line| line.contains(operation));
        lines.filter(|line| line.contains("`max_run`")).count()
    };
    let store = MemoryStore::new();
    let build = || {
        let builder = Engine::builder(store.clone()).lease(LEASE);
        let builder = builder.grace(LEASE / 5).max_run(2 * LEASE);
        async { builder.build().await.unwrap() }
    };
    let (first, other) = (build().await, build().await);
    let (open, gate) = oneshot::channel();
    let hung = tokio::spawn(first.call("crowd.hangs", &1, DAY).run(async move {
        gate.await.ok();
        Ok::<_, Error>(1)
    }));
    until(|| first.stats().attempts == 1).await;
    // Waits until lease and grace are over.
    let call = other.call("crowd.hangs", &1, DAY);
    let told = call.run(async { Ok::<_, Error>(2) }).await;
    let reason = UnknownReason::Lapsed;
    assert!(
        matches!(&told, Err(Error::UnknownOutcome { reason: why, .. }) if *why == reason),
        "{told:?}"
    );
    assert_eq!(first.stats().attempts, 1, "the body still runs");
    // A second body that hangs as long: the renewal thread looked at both.
    let busy = first.call("crowd.hangs", &2, DAY);
    let (end, ended) = oneshot::channel();
    let busy = tokio::spawn(busy.run(async move {
        ended.await.ok();
        Ok::<_, Error>(1)
    }));
    until(|| warnings("crowd.hangs") == 2).await;
    open.send(()).unwrap();
    end.send(()).unwrap();
    assert_eq!(busy.await.unwrap(), Ok(1));
    // Late, and the truth.
    assert_eq!(hung.await.unwrap(), Ok(1));
    assert_eq!(warnings("crowd.hangs"), 2, "one for each");
    idle(&first).await;
}
