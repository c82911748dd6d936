//! What a handler's error makes of its message.

use idem::inbox::{Inbox, Received};
use idem::testing::Testbed;
use idem::{Delivery, Disposition, UnknownReason};

use crate::{Broken, CONSUMER, Runs, seconds};

fn park<T>(error: Broken) -> Received<T, Broken> {
    Received::Failed {
        error,
        delivery: Delivery::Park,
    }
}

fn reason<T, E>(received: &Received<T, E>) -> Option<UnknownReason> {
    match received {
        Received::Unknown { reason, .. } => Some(*reason),
        _ => None,
    }
}

#[tokio::test]
async fn a_failed_delivery_is_unknown_unless_the_handler_says_more() {
    let t = Testbed::new().await;
    let (inbox, runs) = (t.engine().inbox(CONSUMER), Runs::default());
    let failed = inbox.receive("m-1", runs.clone().fail("half done")).await;
    assert_eq!(failed, park(Broken("half done")));
    assert_eq!(failed.delivery(), Delivery::Park);
    let again = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(reason(&again), Some(UnknownReason::Failed), "{again:?}");
    assert_eq!(again.delivery(), Delivery::Park);
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_panic_of_the_handler_leaves_it_unknown() {
    let t = Testbed::new().await;
    let (inbox, runs) = (t.engine().inbox(CONSUMER), Runs::default());
    let panics = tokio::spawn({
        let inbox = inbox.clone();
        async move {
            let handler = async {
                assert!(idem::context().is_err(), "the handler of the test panics");
                Ok::<usize, Broken>(1)
            };
            inbox.receive("m-1", handler).await
        }
    });
    assert!(panics.await.is_err());
    let again = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(reason(&again), Some(UnknownReason::Panicked), "{again:?}");
    assert_eq!(runs.count(), 0);
}

fn classify(error: &Broken) -> Disposition {
    match error.0 {
        "not sent" => Disposition::Release,
        "no such customer" => Disposition::Store,
        _ => Disposition::Unknown,
    }
}

#[tokio::test]
async fn a_released_message_is_handled_again_after_a_growing_pause() {
    let t = Testbed::new().await;
    let runs = Runs::default();
    let inbox = t.engine().inbox(CONSUMER).on_error(classify);
    for pause in [1, 2, 4] {
        let failed = inbox.receive("m-1", runs.clone().fail("not sent")).await;
        let delivery = Delivery::Retry {
            after: seconds(pause),
        };
        let error = Broken("not sent");
        assert_eq!(failed, Received::Failed { error, delivery });
        assert_eq!(failed.delivery(), delivery);
    }
    let sent = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(sent, Received::First(4));
    let again = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(again, Received::Duplicate(4));
}

#[tokio::test]
async fn a_message_that_is_at_fault_is_rejected_until_it_is_forgotten() {
    let t = Testbed::new().await;
    let runs = Runs::default();
    let inbox = t.engine().inbox(CONSUMER).on_error(classify);
    let failed = inbox
        .receive("m-1", runs.clone().fail("no such customer"))
        .await;
    assert_eq!(failed, park(Broken("no such customer")));
    for _ in 0..2 {
        let again = inbox.receive("m-1", runs.clone().handle()).await;
        let message = "no such customer".to_owned();
        assert_eq!(again, Received::Rejected { message });
        assert_eq!(again.delivery(), Delivery::Park);
    }
    assert_eq!(runs.count(), 1);
    let forgotten = inbox
        .forget("m-1", "ops", "the customer is there now")
        .await;
    assert_eq!(forgotten, Ok(true));
    let replayed = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(replayed, Received::First(2));
}

/// An inner call that finds no answer is our own "try later": the handler's
/// failure after it proves nothing.
#[tokio::test]
async fn a_handler_that_met_an_error_of_the_engine_is_unknown() {
    let t = Testbed::new().await;
    let inbox: Inbox<_> = t.engine().inbox(CONSUMER);
    let nested = {
        let inbox = inbox.clone();
        async move {
            let inner = inbox.receive("m-1", async { Ok::<usize, Broken>(1) }).await;
            assert!(matches!(inner, Received::Refused(idem::Error::Reentrant)));
            Err::<usize, _>(Broken("the inner call"))
        }
    };
    assert_eq!(
        inbox.receive("m-1", nested).await,
        park(Broken("the inner call"))
    );
    let again = inbox.receive("m-1", Runs::default().handle()).await;
    assert_eq!(reason(&again), Some(UnknownReason::Nested));
}

/// Unless it is told what its own error says.
#[tokio::test]
async fn a_handler_that_says_so_is_released_also_after_an_error_of_the_engine() {
    let t = Testbed::new().await;
    let release = |_: &Broken| Disposition::Release;
    let inbox = t.engine().inbox(CONSUMER).on_error(release);
    let nested = {
        let inbox = inbox.clone();
        async move {
            let inner = inbox.receive("m-1", Runs::default().handle()).await;
            assert_eq!(inner, Received::Refused(idem::Error::Reentrant));
            Err::<usize, _>(Broken("nothing was sent"))
        }
    };
    let failed = inbox.receive("m-1", nested).await;
    assert!(matches!(failed.delivery(), Delivery::Retry { .. }));
    let again = inbox.receive("m-1", Runs::default().handle()).await;
    assert_eq!(again, Received::First(1));
}
