//! What is rarer than a call: attempts that are replaced, given back or late,
//! and what the store is counted for.

use std::time::Duration;

use idem::store::MemoryStore;
use idem::telemetry::{SPAN, names};
use idem::testing::{ManualClock, Testbed};
use idem::{Clock as _, Engine, Error, OnInProgress, OnUnknown, SystemClock};
use tokio::sync::oneshot;

use crate::listener::Listener;
use crate::recorder::Recorded;
use crate::{DAY, alone};

/// Gives way to other tasks until something holds.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let started = SystemClock.monotonic();
    while !holds() {
        assert!(
            SystemClock.monotonic() - started < Duration::from_secs(20),
            "it does not come true"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_attempt_that_is_replaced_is_counted_as_superseded() {
    let _turn = alone().await;
    let recorded = Recorded::start();
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let build = || async {
        let lease = Duration::from_secs(3600);
        let builder = Engine::builder(store.clone()).lease(lease).max_run(lease);
        builder.build().await.unwrap()
    };
    let (slow, quick) = (build().await, build().await);
    let call = |engine: &Engine| {
        let call = engine.call("gauges.replaced", &1, DAY);
        call.on_unknown(OnUnknown::Rerun)
    };
    let (open, gate) = oneshot::channel::<()>();
    let zombie = tokio::spawn(call(&slow).run(async move {
        gate.await.ok();
        Ok::<_, Error>(1)
    }));
    until(|| slow.stats().attempts == 1).await;
    assert!((recorded.gauge(names::HELD) - 1.0).abs() < f64::EPSILON);
    clock.advance(Duration::from_secs(7200));
    let counts = slow.observe_store().await.unwrap();
    assert_eq!((counts.lapsed, counts.in_progress), (1, 0));
    assert!((recorded.gauge(names::LAPSED) - 1.0).abs() < f64::EPSILON);
    assert!((recorded.gauge(names::IN_PROGRESS_AGE) - 7200.0).abs() < 1.0);

    assert_eq!(call(&quick).run(async { Ok::<_, Error>(2) }).await, Ok(2));
    open.send(()).unwrap();
    assert_eq!(zombie.await.unwrap(), Ok(2), "the recorded answer");
    let of = ("operation", "gauges.replaced");
    let ends = |end| recorded.count(names::ATTEMPTS, &[of, ("end", end)]);
    assert_eq!((ends("superseded"), ends("completed")), (1, 1));
    assert_eq!(recorded.count(names::RESERVATIONS, &[of]), 2);
    assert_eq!(recorded.count(names::TAKEOVERS, &[of]), 1);
    let calls = |outcome| recorded.count(names::CALLS, &[of, ("outcome", outcome)]);
    assert_eq!((calls("executed"), calls("replayed")), (1, 1));
    assert!(recorded.gauge(names::HELD).abs() < f64::EPSILON);
}

#[tokio::test]
async fn a_caller_that_leaves_is_counted_once_whatever_becomes_of_its_body() {
    let _turn = alone().await;
    let recorded = Recorded::start();
    let engine = Engine::builder(MemoryStore::new()).build().await.unwrap();
    let left = |operation: &'static str, waits: bool| {
        let engine = engine.clone();
        async move {
            let (start, started) = oneshot::channel();
            let (open, gate) = oneshot::channel::<()>();
            let body = async move {
                start.send(()).ok();
                gate.await.ok();
                Ok::<_, Error>(1)
            };
            let call = engine.call(operation, &1, DAY);
            let caller = if waits {
                tokio::spawn(call.run(body))
            } else {
                tokio::spawn(call.run_borrowed(body))
            };
            started.await.unwrap();
            // One more waits for it, and leaves too.
            let waiter = tokio::spawn(
                engine
                    .call(operation, &1, DAY)
                    .run(async { Ok::<_, Error>(2) }),
            );
            until(|| engine.stats().waiters == 1).await;
            assert!((recorded.gauge(names::WAITING) - 1.0).abs() < f64::EPSILON);
            waiter.abort();
            until(|| engine.stats().waiters == 0).await;
            caller.abort();
            caller.await.unwrap_err();
            drop(open);
        }
    };
    left("gauges.finished", true).await;
    left("gauges.abandoned", false).await;
    until(|| engine.stats().attempts + engine.stats().tasks == 0).await;
    let calls = |operation, outcome| {
        let labels = [("operation", operation), ("outcome", outcome)];
        recorded.count(names::CALLS, &labels)
    };
    // The waiter left; the first caller too, and its body went on.
    assert_eq!(calls("gauges.finished", "left"), 1);
    assert_eq!(calls("gauges.finished", "executed"), 1);
    // Its body did not.
    assert_eq!(calls("gauges.abandoned", "left"), 2);
    assert_eq!(calls("gauges.abandoned", "executed"), 0);
    let unknown = [("operation", "gauges.abandoned"), ("end", "unknown")];
    until(|| recorded.count(names::ATTEMPTS, &unknown) == 1).await;
}

#[tokio::test]
async fn sweep_rows_renewals_and_overdue_bodies_are_counted() {
    let _turn = alone().await;
    let recorded = Recorded::start();
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let builder = Engine::builder(store).clock(clock.clone());
    let builder = builder
        .lease(Duration::from_secs(30))
        .max_run(Duration::from_secs(60));
    let engine = builder.build().await.unwrap();
    for key in 0..3 {
        let call = engine.call("gauges.swept", &key, Duration::from_secs(60));
        call.run(async { Ok::<_, Error>(()) }).await.unwrap();
    }
    clock.advance(Duration::from_secs(3600));
    let before = recorded.count(names::SWEPT, &[]);
    assert_eq!(engine.sweep().await, Ok(3));
    assert_eq!(recorded.count(names::SWEPT, &[]) - before, 3);

    let t = Testbed::with(|builder| builder.max_run(Duration::from_secs(60))).await;
    let before = recorded.samples(names::RENEWAL_LAG).len();
    let (open, gate) = oneshot::channel::<()>();
    let call = t.engine().call("gauges.overdue", &1, DAY);
    let running = tokio::spawn(call.run(async move {
        gate.await.ok();
        Ok::<_, Error>(())
    }));
    until(|| t.engine().stats().attempts == 1).await;
    t.clock().advance(Duration::from_secs(120));
    let overdue = [("operation", "gauges.overdue")];
    until(|| recorded.count(names::OVERDUE, &overdue) == 1).await;
    open.send(()).unwrap();
    running.await.unwrap().unwrap();
    let lags = recorded.samples(names::RENEWAL_LAG);
    assert!(lags.len() > before, "a renewal was planned, and came");
    assert!(lags.iter().all(|lag| *lag >= 0.0));
    let renewals = recorded.samples(names::STORE_SECONDS);
    assert!(!renewals.is_empty());
}

#[tokio::test]
async fn a_call_is_one_span_around_its_body_that_says_how_it_ended() {
    let _turn = alone().await;
    Recorded::start();
    let listener = Listener::start();
    let engine = Engine::builder(MemoryStore::new()).build().await.unwrap();
    for borrowed in [false, true] {
        listener.take();
        let body = async {
            tokio::task::yield_now().await;
            tracing::info!("in the body");
            Ok::<_, Error>(1)
        };
        let call = engine.call("gauges.span", &borrowed, DAY);
        let record = if borrowed {
            call.run_borrowed(body).await.unwrap();
            None
        } else {
            call.run_detailed(body).await.1.record
        };
        let lines = listener.take();
        let span = format!("{SPAN}: operation=gauges.span");
        let spans = lines.iter().filter(|line| line.contains(&span)).count();
        assert_eq!(spans, 1, "{lines:?}");
        for field in ["outcome=executed", "attempt=1"] {
            let recorded = format!("recorded: {field}");
            assert!(lines.contains(&recorded), "{field}: {lines:?}");
        }
        let body = lines
            .iter()
            .find(|line| line.contains("in the body"))
            .unwrap();
        assert!(body.ends_with(&format!("within {SPAN}")), "{body}");
        if let Some(record) = record {
            assert!(
                lines.contains(&format!("recorded: record={record}")),
                "{lines:?}"
            );
        }
    }
    let reject = engine.call("gauges.span", "", DAY);
    let reject = reject.on_in_progress(OnInProgress::Reject);
    reject.run(async { Ok::<_, Error>(1) }).await.unwrap_err();
    let lines = listener.take();
    assert!(
        lines.contains(&"recorded: outcome=invalid_key".to_owned()),
        "{lines:?}"
    );
}
