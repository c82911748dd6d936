//! Testbeds share nothing; processes of one testbed share records and the clock.

use idem::testing::{CrashPoint, Testbed, assert_executed, assert_how, assert_replayed};
use idem::{Error, Secret, idempotent};

use crate::{Gate, HOUR};

#[idempotent(name = "process.take", key = order, ttl = "1h")]
async fn take(order: u32) -> Result<u32, Error> {
    Ok(order)
}

#[idempotent(key = order, ttl = "1h")]
async fn derived(order: u32) -> Result<u32, Error> {
    Ok(order)
}

#[idempotent(name = "process.hold", key = order, ttl = "1h", on_in_progress = wait("20ms"))]
async fn hold(gate: Gate, order: u32) -> Result<u32, Error> {
    gate.pass().await;
    Ok(order)
}

/// What every test does at once here, on the same operation and the same keys.
async fn alone() {
    let t = Testbed::new().await;
    for order in 0..20 {
        t.crash_at("process.take", CrashPoint::BeforeBody);
        assert_eq!(t.scope(take(order)).await, Err(Error::ShuttingDown));
        assert_executed!(t.scope(take(order + 100))).unwrap();
    }
    assert_eq!(t.runs("process.take"), 20);
    assert_eq!(t.store().len(), 40);
    t.clock().advance(2 * HOUR);
    assert_executed!(t.scope(take(100))).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tests_that_run_side_by_side_do_not_meet() {
    let all: Vec<_> = (0..16).map(|_| tokio::spawn(alone())).collect();
    for one in all {
        one.await.unwrap();
    }
}

#[tokio::test]
async fn another_process_has_the_same_records_and_nothing_else_in_common() {
    let t = Testbed::new().await;
    let other = t.another_process().await;
    assert_executed!(t.scope(take(1))).unwrap();
    assert_replayed!(other.scope(take(1))).unwrap();
    assert_eq!((t.runs("process.take"), other.runs("process.take")), (1, 0));

    // A point of one is none of the other.
    t.crash_at("process.take", CrashPoint::BeforeBody);
    assert_executed!(other.scope(take(2))).unwrap();
    assert_eq!(t.scope(take(3)).await, Err(Error::ShuttingDown));

    // It does not coalesce with a flight of the other, but waits at the store.
    let gate = Gate::closed();
    let first = tokio::spawn(t.scope(hold(gate.clone(), 1)));
    gate.began.notified().await;
    let waited = assert_how!(Refused, other.scope(hold(gate.clone(), 1)));
    assert!(waited.is_err_and(|error| error.is_in_progress()));
    assert_eq!(other.engine().stats().flights, 0);
    gate.open();
    assert_eq!(first.await.unwrap(), Ok(1));
    assert_replayed!(other.scope(hold(gate, 1))).unwrap();
}

#[tokio::test]
async fn another_process_goes_on_when_the_first_is_gone() {
    let t = Testbed::new().await;
    let other = t.another_process().await;
    assert_executed!(t.scope(take(1))).unwrap();
    drop(t);
    other.clock().advance(HOUR / 2);
    assert_replayed!(other.scope(take(1))).unwrap();
}

#[tokio::test]
async fn settings_hold_for_every_process() {
    let t = Testbed::with(|builder| {
        let secret = Secret::new(*b"sixteen bytes or more").unwrap();
        builder.namespace("shop").secret(secret).strict()
    })
    .await;
    let other = t.another_process().await;
    assert_executed!(t.scope(take(1))).unwrap();
    assert_replayed!(other.scope(take(1))).unwrap();
    for t in [&t, &other] {
        let refused = t.scope(derived(1)).await;
        assert!(matches!(refused, Err(Error::Misuse { .. })));
    }
}
