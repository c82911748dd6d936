//! Time passes when a test says so, and what runs lives meanwhile.

use std::time::Duration;

use idem::testing::{Testbed, assert_executed, assert_replayed};
use idem::{Clock as _, Error, UnknownReason, idempotent};

use crate::{Gate, HOUR, MINUTE};

#[idempotent(name = "clock.hold", key = order, ttl = "1h", on_in_progress = reject)]
async fn hold(gate: Gate, order: u32) -> Result<u32, Error> {
    gate.pass().await;
    Ok(order)
}

#[idempotent(
    name = "clock.short", key = order, ttl = "1h", on_in_progress = reject, lease = "1s"
)]
async fn short(gate: Gate, order: u32) -> Result<u32, Error> {
    gate.pass().await;
    Ok(order)
}

#[idempotent(
    name = "clock.bounded", key = order, ttl = "1h", on_in_progress = reject, max_run = "5m"
)]
async fn bounded(gate: Gate, order: u32) -> Result<u32, Error> {
    gate.pass().await;
    Ok(order)
}

#[idempotent(name = "clock.keep", key = order, ttl = "1h")]
async fn keep(order: u32) -> Result<u32, Error> {
    Ok(order)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_body_never_lapses_while_the_clock_moves() {
    let t = Testbed::new().await;
    let other = t.another_process().await;
    let (long, brief) = (Gate::closed(), Gate::closed());
    let first = tokio::spawn(t.scope(hold(long.clone(), 1)));
    let second = tokio::spawn(t.scope(short(brief.clone(), 1)));
    long.began.notified().await;
    brief.began.notified().await;

    assert_executed!(t.scope(keep(1))).unwrap();
    for _ in 0..3 {
        t.clock().advance(25 * MINUTE);
        // What has lapsed would be `UnknownOutcome`.
        for again in [
            other.scope(hold(long.clone(), 1)).await,
            other.scope(short(brief.clone(), 1)).await,
        ] {
            assert!(again.is_err_and(|error| error.is_in_progress()));
        }
    }
    // Other answers expire meanwhile.
    assert_executed!(other.scope(keep(1))).unwrap();

    long.open();
    brief.open();
    assert_eq!(first.await.unwrap(), Ok(1));
    assert_eq!(second.await.unwrap(), Ok(1));
    assert_replayed!(other.scope(hold(long, 1))).unwrap();
    assert_replayed!(other.scope(short(brief, 1))).unwrap();
    assert_eq!(other.runs("clock.hold") + other.runs("clock.short"), 0);
}

#[tokio::test]
async fn bodies_of_other_processes_live_too_whoever_moves_the_clock() {
    let t = Testbed::new().await;
    let other = t.another_process().await;
    let gate = Gate::closed();
    let held = tokio::spawn(other.scope(hold(gate.clone(), 1)));
    gate.began.notified().await;
    t.clock().advance(2 * HOUR);
    let again = t.scope(hold(gate.clone(), 1)).await;
    assert!(again.is_err_and(|error| error.is_in_progress()));
    gate.open();
    assert_eq!(held.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn the_body_itself_believes_in_its_lease() {
    let t = Testbed::new().await;
    let call = t.engine().call("clock.believes", &1, HOUR);
    let clock = t.clock().clone();
    let held = call.run(async move {
        clock.advance(2 * HOUR);
        idem::context()?.ensure_held().await
    });
    assert_eq!(held.await, Ok(()));
}

#[tokio::test]
async fn a_body_beyond_its_max_run_lapses() {
    let t = Testbed::new().await;
    let gate = Gate::closed();
    let held = tokio::spawn(t.scope(bounded(gate.clone(), 1)));
    gate.began.notified().await;
    t.clock().advance(4 * MINUTE);
    let again = t.scope(bounded(gate.clone(), 1)).await;
    assert!(again.is_err_and(|error| error.is_in_progress()));
    t.clock().advance(3 * MINUTE);
    match t.scope(bounded(gate.clone(), 1)).await {
        Err(Error::UnknownOutcome { reason, .. }) => assert_eq!(reason, UnknownReason::Lapsed),
        answer => panic!("{answer:?}"),
    }
    gate.open();
    assert_eq!(held.await.unwrap(), Ok(1));
}

#[tokio::test]
async fn the_clock_moves_by_exactly_what_it_is_told() {
    let t = Testbed::new().await;
    let gate = Gate::closed();
    let held = tokio::spawn(t.scope(hold(gate.clone(), 1)));
    gate.began.notified().await;
    let (wall, own) = (t.clock().unix_us(), t.clock().monotonic());
    let by = Duration::from_micros(123_456_789);
    t.clock().advance(by);
    assert_eq!(t.clock().unix_us() - wall, 123_456_789);
    assert_eq!(t.clock().monotonic() - own, by);
    t.clock().advance(Duration::ZERO);
    assert_eq!(t.clock().monotonic() - own, by);
    gate.open();
    held.await.unwrap().unwrap();
}

#[tokio::test]
async fn nothing_but_the_test_moves_the_clock() {
    let t = Testbed::new().await;
    let before = t.clock().unix_us();
    t.scope(keep(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(t.clock().unix_us(), before);
}
