//! Deliveries that are one too many.

use idem::inbox::Received;
use idem::testing::{CrashPoint, Testbed};
use idem::{Delivery, Disposition, OnUnknown};

use crate::{Broken, CONSUMER, Runs};

fn released(_: &Broken) -> Disposition {
    Disposition::Release
}

#[tokio::test]
async fn attempts_are_counted_by_the_record() {
    let t = Testbed::new().await;
    let runs = Runs::default();
    let inbox = t.engine().inbox(CONSUMER).on_error(released);
    let limited = inbox.clone().max_attempts(3);
    for _ in 0..3 {
        let failed = limited.receive("m-1", runs.clone().fail("busy")).await;
        assert!(
            matches!(failed.delivery(), Delivery::Retry { .. }),
            "{failed:?}"
        );
    }
    for deliveries in [4, 5] {
        let over = limited.receive("m-1", runs.clone().handle()).await;
        assert_eq!(over, Received::OverLimit { deliveries });
        assert_eq!(over.delivery(), Delivery::Park);
    }
    assert_eq!(runs.count(), 3, "what is over the limit does not run");
    let lifted = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(lifted, Received::First(4), "and did nothing");
}

#[tokio::test]
async fn deliveries_are_counted_by_the_broker_if_it_says() {
    let t = Testbed::new().await;
    let runs = Runs::default();
    let inbox = t
        .engine()
        .inbox(CONSUMER)
        .on_error(released)
        .max_attempts(2);
    for _ in 0..3 {
        let message = inbox.message("m-1").delivery(2);
        let failed = message.receive(runs.clone().fail("busy")).await;
        assert!(matches!(failed, Received::Failed { .. }), "{failed:?}");
    }
    let over = inbox
        .message("m-1")
        .delivery(3)
        .receive(runs.clone().handle())
        .await;
    assert_eq!(over, Received::OverLimit { deliveries: 3 });
    // The first that this consumer sees of it, and the broker's third.
    let over = inbox
        .message("m-2")
        .delivery(3)
        .receive(runs.clone().handle())
        .await;
    assert_eq!(over, Received::OverLimit { deliveries: 3 });
    assert_eq!(runs.count(), 3);
}

#[tokio::test]
async fn what_was_handled_stays_a_duplicate_however_often_it_comes() {
    let t = Testbed::new().await;
    let runs = Runs::default();
    let inbox = t.engine().inbox(CONSUMER).max_attempts(1);
    let first = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(first, Received::First(1));
    for number in [2, 3, u32::MAX] {
        let message = inbox.message("m-1").delivery(number);
        let again = message.receive(runs.clone().handle()).await;
        assert_eq!(again, Received::Duplicate(1));
        assert_eq!(again.delivery(), Delivery::Ack);
    }
}

#[tokio::test]
async fn a_limit_of_none_is_one() {
    let t = Testbed::new().await;
    let runs = Runs::default();
    let inbox = t.engine().inbox(CONSUMER).max_attempts(0);
    let first = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(first, Received::First(1));
}

/// Not to run a handler takes no doubt away: an earlier one may have had its
/// effect.
#[tokio::test]
async fn a_doubt_outlives_a_delivery_that_is_over_the_limit() {
    let t = Testbed::new().await;
    let runs = Runs::default();
    let inbox = t.engine().inbox(CONSUMER);
    t.crash_at(CONSUMER, CrashPoint::AfterBody);
    drop(inbox.receive("m-1", runs.clone().handle()).await);
    t.lapse();
    let limited = inbox.clone().on_unknown(OnUnknown::Rerun).max_attempts(1);
    let over = limited.receive("m-1", runs.clone().handle()).await;
    assert_eq!(over, Received::OverLimit { deliveries: 2 });
    let refused = inbox.receive("m-1", runs.clone().handle()).await;
    assert!(matches!(refused, Received::Unknown { .. }), "{refused:?}");
    assert_eq!(runs.count(), 1);
}
