//! A message that is to be handled once more.

use idem::inbox::Received;
use idem::store::{Store as _, StoreAdmin as _};
use idem::testing::{CrashPoint, Testbed};
use idem::{Engine, Error, StoreErrorKind};

use crate::blind::Blind;
use crate::{Broken, CONSUMER, Gate, Runs, seconds};

#[tokio::test]
async fn a_forgotten_message_is_handled_once_more_and_its_note_is_kept() {
    let t = Testbed::new().await;
    let (inbox, runs) = (t.engine().inbox(CONSUMER), Runs::default());
    let handler = async { Ok::<_, Broken>(idem::context().unwrap().record_id()) };
    let record = inbox.receive("m-1", handler).await.answer().unwrap();
    assert_eq!(inbox.forget("m-1", "kim", "undone by hand").await, Ok(true));
    assert_eq!(inbox.forget("m-1", "kim", "again").await, Ok(false));
    let handled = t
        .engine()
        .inbox("other")
        .receive("m-1", runs.clone().handle())
        .await;
    assert_eq!(
        handled,
        Received::First(1),
        "another consumer's is untouched"
    );

    let audit = t.store().audit(&record).await.unwrap();
    let [entry] = &audit[..] else {
        panic!("{audit:?}");
    };
    assert_eq!(
        (entry.note.by(), entry.note.why()),
        ("kim", "undone by hand")
    );
    let handler = async { Ok::<_, Broken>(idem::context().unwrap().record_id()) };
    let again = inbox.receive("m-1", handler).await;
    assert_eq!(again, Received::First(record));
}

#[tokio::test]
async fn an_outcome_in_doubt_can_be_forgotten_and_what_is_not_there_cannot() {
    let t = Testbed::new().await;
    let (inbox, runs) = (t.engine().inbox(CONSUMER), Runs::default());
    assert_eq!(inbox.forget("m-1", "kim", "a test").await, Ok(false));
    drop(inbox.receive("m-1", runs.clone().fail("half done")).await);
    assert_eq!(
        inbox.forget("m-1", "kim", "nothing was sent").await,
        Ok(true)
    );
    let again = inbox.receive("m-1", runs.clone().handle()).await;
    assert_eq!(again, Received::First(2));

    t.crash_at(CONSUMER, CrashPoint::AfterBody);
    drop(inbox.receive("m-2", runs.clone().handle()).await);
    let early = inbox.forget("m-2", "kim", "too early").await;
    assert!(matches!(early, Err(Error::InProgress { .. })), "{early:?}");
    t.lapse();
    assert_eq!(
        inbox.forget("m-2", "kim", "its process is gone").await,
        Ok(true)
    );

    let short = inbox.clone().ttl(seconds(1));
    short
        .receive("m-3", runs.clone().handle())
        .await
        .answer()
        .unwrap();
    t.clock().advance(seconds(2));
    assert_eq!(inbox.forget("m-3", "kim", "expired").await, Ok(false));
}

#[tokio::test]
async fn a_message_that_is_being_handled_is_not_forgotten() {
    let t = Testbed::new().await;
    let (inbox, gate) = (t.engine().inbox(CONSUMER), Gate::closed());
    let running = tokio::spawn({
        let (inbox, gate) = (inbox.clone(), gate.clone());
        async move {
            let handler = async move {
                gate.pass().await;
                Ok::<_, Broken>(1_usize)
            };
            inbox.receive("m-1", handler).await
        }
    });
    gate.began.notified().await;
    let refused = inbox.forget("m-1", "kim", "impatient").await;
    let Err(Error::InProgress { retry_after }) = refused else {
        panic!("{refused:?}");
    };
    assert!(retry_after > seconds(0) && retry_after <= seconds(5));
    gate.open();
    assert_eq!(running.await.unwrap(), Received::First(1));
}

#[tokio::test]
async fn a_blank_note_and_a_store_without_operators_are_refused() {
    let t = Testbed::new().await;
    let inbox = t.engine().inbox(CONSUMER);
    inbox
        .receive("m-1", Runs::default().handle())
        .await
        .answer()
        .unwrap();
    for (by, why) in [("", "a reason"), ("kim", " ")] {
        let refused = inbox.forget("m-1", by, why).await;
        assert!(matches!(refused, Err(Error::Misuse { .. })), "{refused:?}");
    }
    let again = inbox.receive("m-1", Runs::default().handle()).await;
    assert_eq!(again, Received::Duplicate(1));

    assert!(Blind::default().admin().is_none());
    let engine = Engine::builder(Blind::default()).build().await.unwrap();
    let refused = engine.inbox(CONSUMER).forget("m-1", "kim", "a test").await;
    let Err(Error::Store(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
}

#[tokio::test]
async fn a_message_in_memory_is_a_duplicate_until_it_is_forgotten() {
    let store = idem::store::MemoryStore::new();
    let engine = Engine::builder(store.clone()).cache(1 << 20);
    let engine = engine.build().await.unwrap();
    let (inbox, runs) = (engine.inbox(CONSUMER), Runs::default());
    let receive = || inbox.receive("m-1", runs.clone().handle());
    assert_eq!(receive().await, Received::First(1));
    for _ in 0..2 {
        assert_eq!(receive().await, Received::Duplicate(1));
    }
    assert_eq!(inbox.forget("m-1", "kim", "undone by hand").await, Ok(true));
    assert_eq!(receive().await, Received::First(2));
    assert_eq!(receive().await, Received::Duplicate(2));
}
