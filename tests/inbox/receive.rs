//! The first delivery runs; every other one is told what to do.

use idem::inbox::Received;
use idem::testing::{CrashPoint, Testbed};
use idem::{Delivery, Error, OnInProgress, OnUnknown};

use crate::{Broken, CONSUMER, Gate, Runs, seconds};

#[tokio::test]
async fn the_first_delivery_runs_and_a_duplicate_gets_its_answer() {
    let t = Testbed::new().await;
    let (inbox, runs) = (t.engine().inbox(CONSUMER), Runs::default());
    let first = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(first, Received::First(1));
    assert_eq!(first.delivery(), Delivery::Ack);
    for _ in 0..3 {
        let again = inbox.receive("m-1", runs.clone().handle()).await;
        assert_eq!(again, Received::Duplicate(1));
        assert_eq!(again.delivery(), Delivery::Ack);
        assert_eq!(again.answer(), Some(1));
    }
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn consumers_and_scopes_handle_one_message_each() {
    let t = Testbed::new().await;
    let runs = Runs::default();
    let engine = t.engine();
    let inboxes = [
        engine.inbox("billing.invoice-paid"),
        engine.inbox("mail.invoice-paid"),
        engine.inbox("billing.invoice-paid").scope("eu"),
        engine.inbox("billing.invoice-paid").scope("us"),
    ];
    for (at, inbox) in inboxes.iter().enumerate() {
        let received = inbox.receive("m-1", runs.clone().handle()).await;
        assert_eq!(received, Received::First(at + 1));
    }
    for (at, inbox) in inboxes.iter().enumerate() {
        let received = inbox.receive("m-1", runs.clone().handle()).await;
        assert_eq!(received, Received::Duplicate(at + 1));
    }
}

#[tokio::test]
async fn a_duplicate_beside_a_running_handler_comes_again_and_is_not_acknowledged() {
    let t = Testbed::new().await;
    let (inbox, runs, gate) = (t.engine().inbox(CONSUMER), Runs::default(), Gate::closed());
    let first = tokio::spawn({
        let (inbox, runs, gate) = (inbox.clone(), runs.clone(), gate.clone());
        async move {
            let handler = async move {
                gate.pass().await;
                runs.handle().await
            };
            inbox.receive("m-1", handler).await
        }
    });
    gate.began.notified().await;
    // In this process and in another one.
    let other = t.another_process().await;
    for engine in [t.engine(), other.engine()] {
        let inbox = engine.inbox(CONSUMER);
        let received = inbox.receive("m-1", runs.clone().handle()).await;
        let Received::InProgress { retry_after } = received else {
            panic!("{received:?}");
        };
        assert!(retry_after <= seconds(5), "{retry_after:?}");
        let after = retry_after;
        assert_eq!(received.delivery(), Delivery::Retry { after });
    }
    gate.open();
    assert_eq!(first.await.unwrap(), Received::First(1));
    let again = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(again, Received::Duplicate(1));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_consumer_that_may_wait_gets_the_answer_of_the_running_one() {
    let t = Testbed::new().await;
    let wait = OnInProgress::Wait(seconds(30));
    let inbox = t.engine().inbox(CONSUMER).on_in_progress(wait);
    let (runs, gate) = (Runs::default(), Gate::closed());
    let receive = |gate: Gate| {
        let (inbox, runs) = (inbox.clone(), runs.clone());
        tokio::spawn(async move {
            let handler = async move {
                gate.pass().await;
                runs.handle().await
            };
            inbox.receive("m-1", handler).await
        })
    };
    let first = receive(gate.clone());
    gate.began.notified().await;
    let second = receive(gate.clone());
    while t.engine().stats().waiters == 0 {
        tokio::task::yield_now().await;
    }
    gate.open();
    assert_eq!(first.await.unwrap(), Received::First(1));
    assert_eq!(second.await.unwrap(), Received::Duplicate(1));
}

#[tokio::test]
async fn a_handler_whose_process_died_is_parked_when_its_lease_is_over() {
    let t = Testbed::new().await;
    let (inbox, runs) = (t.engine().inbox(CONSUMER), Runs::default());
    t.crash_at(CONSUMER, CrashPoint::AfterBody);
    let died = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(died, Received::Refused(Error::ShuttingDown));
    assert!(matches!(died.delivery(), Delivery::Retry { .. }));

    let early = inbox.receive("m-1", runs.clone().handle()).await;
    assert!(matches!(early, Received::InProgress { .. }), "{early:?}");
    t.lapse();
    for _ in 0..2 {
        let late = inbox.receive("m-1", runs.clone().handle()).await;
        assert!(matches!(late, Received::Unknown { .. }), "{late:?}");
        assert_eq!(late.delivery(), Delivery::Park);
    }
    assert_eq!(runs.count(), 1);

    // Unless it may happen twice.
    let inbox = inbox.on_unknown(OnUnknown::Rerun);
    let rerun = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(rerun, Received::First(2));
}

#[tokio::test]
async fn a_dropped_delivery_goes_on_and_the_next_one_is_a_duplicate() {
    let t = Testbed::new().await;
    let (inbox, runs, gate) = (t.engine().inbox(CONSUMER), Runs::default(), Gate::closed());
    let handler = {
        let (runs, gate) = (runs.clone(), gate.clone());
        async move {
            gate.pass().await;
            runs.handle().await
        }
    };
    tokio::select! {
        biased;
        received = inbox.receive("m-1", handler) => panic!("{received:?}"),
        () = gate.began.notified() => {}
    }
    gate.open();
    while t.engine().stats().tasks > 0 {
        tokio::task::yield_now().await;
    }
    let again = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(again, Received::Duplicate(1));
}

#[tokio::test]
async fn a_message_is_known_for_fourteen_days_unless_told() {
    let t = Testbed::new().await;
    let day = seconds(86_400);
    let runs = Runs::default();
    let by_default = t.engine().inbox(CONSUMER);
    let short = t.engine().inbox("short").ttl(day);
    for inbox in [&by_default, &short] {
        inbox
            .receive("m-1", runs.clone().handle())
            .await
            .answer()
            .unwrap();
    }
    let receive = async |inbox: &idem::inbox::Inbox| {
        let received = inbox.receive("m-1", runs.clone().handle()).await;
        matches!(received, Received::First(_))
    };
    t.clock().advance(day);
    assert!(!receive(&short).await);
    t.clock().advance(seconds(1));
    assert!(receive(&short).await);
    t.clock().advance(13 * day - seconds(1));
    assert!(!receive(&by_default).await);
    t.clock().advance(seconds(1));
    assert!(receive(&by_default).await);
}

#[tokio::test]
async fn mistakes_are_told_without_running() {
    let t = Testbed::new().await;
    let (inbox, runs) = (t.engine().inbox(CONSUMER), Runs::default());
    let no_id = inbox.receive(&None::<&str>, runs.clone().handle()).await;
    assert!(matches!(no_id, Received::Refused(Error::InvalidKey { .. })));
    assert_eq!(no_id.delivery(), Delivery::Park);

    let message = |amount: u32| inbox.message("m-1").payload(&amount);
    let first = message(1).receive(runs.clone().handle()).await;
    assert_eq!(first, Received::First(1));
    let other = message(2).receive(runs.clone().handle()).await;
    assert!(matches!(&other, Received::Refused(error) if error.is_mismatch()));
    assert_eq!(other.delivery(), Delivery::Park);

    let repair = Delivery::Retry { after: seconds(30) };
    for inbox in [
        t.engine().inbox(""),
        t.engine().inbox(CONSUMER).on_unknown(OnUnknown::Recover),
        t.engine().inbox(CONSUMER).ttl(seconds(0)),
    ] {
        let refused = inbox.receive("m-2", runs.clone().handle()).await;
        assert!(
            matches!(refused, Received::Refused(Error::Misuse { .. })),
            "{refused:?}"
        );
        assert_eq!(refused.delivery(), repair);
    }
    let nowhere = idem::inbox(CONSUMER)
        .receive("m-2", runs.clone().handle())
        .await;
    assert_eq!(nowhere, Received::Refused(Error::NoEngine));
    assert_eq!(runs.count(), 1);

    let inbox = idem::inbox(CONSUMER);
    let scoped = t.scope(inbox.receive("m-2", runs.clone().handle())).await;
    assert_eq!(scoped, Received::First(2), "the task's engine");
}

#[tokio::test]
async fn an_answer_that_cannot_be_replayed_is_acknowledged() {
    let t = Testbed::with(|builder| builder.answer_limit(1_024)).await;
    let inbox = t.engine().inbox(CONSUMER);
    let large = async || {
        let handler = async { Ok::<_, Broken>("a".repeat(2_048)) };
        inbox.receive("m-1", handler).await
    };
    assert_eq!(
        large().await.answer().map(|answer| answer.len()),
        Some(2_048)
    );
    let again = large().await;
    assert!(matches!(
        again,
        Received::Refused(Error::NotReplayable { .. })
    ));
    assert_eq!(again.delivery(), Delivery::Ack);
}
