//! Which of many messages are new.

use std::collections::HashSet;

use idem::inbox::Received;
use idem::store::{Capability, Store as _};
use idem::testing::{CrashPoint, Testbed};
use idem::{Disposition, Engine, Error, StoreErrorKind, idempotent};

use crate::blind::{Blind, Short};
use crate::{Broken, CONSUMER, Gate, Runs, seconds};

#[tokio::test]
async fn the_new_ones_come_in_the_order_of_the_ids() {
    let t = Testbed::new().await;
    let inbox = t.engine().inbox(CONSUMER);
    for id in [4, 1, 9] {
        inbox
            .receive(&id, Runs::default().handle())
            .await
            .answer()
            .unwrap();
    }
    let unseen = inbox.unseen([9, 8, 7, 4, 8, 1, 2]).await.unwrap();
    assert_eq!(unseen.new, [8, 7, 8, 2]);
    assert_eq!(
        (unseen.open.len(), unseen.finished, unseen.trips),
        (0, 3, 1)
    );
    let other = t.engine().inbox(CONSUMER).scope("eu");
    let unseen = other.unseen([9, 4]).await.unwrap();
    assert_eq!(unseen.new, [9, 4], "of another scope");
    let nothing = inbox.unseen([0_u8; 0]).await.unwrap();
    assert_eq!((nothing.trips, nothing.unfinished()), (0, vec![]));
}

#[tokio::test]
async fn what_was_begun_is_open_and_what_did_nothing_is_new() {
    let t = Testbed::new().await;
    let inbox = t.engine().inbox(CONSUMER);
    inbox
        .receive("done", Runs::default().handle())
        .await
        .answer()
        .unwrap();
    drop(
        inbox
            .receive("unknown", Runs::default().fail("half done"))
            .await,
    );
    t.crash_at(CONSUMER, CrashPoint::AfterBody);
    drop(inbox.receive("lapsed", Runs::default().handle()).await);
    t.lapse();
    let release = |_: &Broken| Disposition::Release;
    let releasing = inbox.clone().on_error(release);
    drop(
        releasing
            .receive("released", Runs::default().fail("busy"))
            .await,
    );
    let reject = |_: &Broken| Disposition::Store;
    let rejecting = inbox.clone().on_error(reject);
    drop(
        rejecting
            .receive("rejected", Runs::default().fail("bad"))
            .await,
    );
    let short = inbox.clone().ttl(seconds(1));
    short
        .receive("expired", Runs::default().handle())
        .await
        .answer()
        .unwrap();
    t.clock().advance(seconds(1));
    t.clock().advance(seconds(1));
    let gate = Gate::closed();
    let running = tokio::spawn({
        let (inbox, gate) = (inbox.clone(), gate.clone());
        async move {
            let handler = async move {
                gate.pass().await;
                Ok::<_, Broken>(1_usize)
            };
            inbox.receive("running", handler).await
        }
    });
    gate.began.notified().await;

    let ids = [
        "absent", "done", "unknown", "lapsed", "released", "rejected", "expired", "running",
    ];
    let unseen = inbox.unseen(ids).await.unwrap();
    assert_eq!(unseen.new, ["absent", "released", "expired"]);
    assert_eq!(unseen.open, ["unknown", "lapsed", "running"]);
    assert_eq!(unseen.finished, 2);
    assert_eq!(unseen.unfinished().len(), 6);
    gate.open();
    assert_eq!(running.await.unwrap(), Received::First(1));
}

#[tokio::test]
async fn eight_thousand_ids_are_eight_questions() {
    let t = Testbed::new().await;
    let inbox = t.engine().inbox(CONSUMER);
    let done: HashSet<u32> = (0..8_000).filter(|id| id % 1_999 == 0).collect();
    for id in &done {
        inbox
            .receive(id, Runs::default().handle())
            .await
            .answer()
            .unwrap();
    }
    let unseen = inbox.unseen(0..8_000_u32).await.unwrap();
    assert_eq!(unseen.trips, 8);
    let expected: Vec<u32> = (0..8_000).filter(|id| !done.contains(id)).collect();
    assert_eq!(unseen.new, expected);
    let odd = inbox.unseen(0..1_001_u32).await.unwrap();
    assert_eq!((odd.trips, odd.new.len()), (2, 1_000));
}

#[idempotent(name = "crm.apply-customer", key = (tenant, id), ttl = "24h")]
async fn apply(tenant: &'static str, id: u32) -> Result<u32, Error> {
    Ok(tenant.len().try_into().unwrap_or(0) + id)
}

#[tokio::test]
async fn the_keys_of_an_annotated_function_are_told_by_its_name() {
    let t = Testbed::new().await;
    t.scope(apply("eu", 1)).await.unwrap();
    let inbox = t.engine().inbox("crm.apply-customer");
    let keys = [("eu", 1), ("eu", 2), ("us", 1)];
    let unseen = inbox.unseen(keys).await.unwrap();
    assert_eq!(unseen.new, [("eu", 2), ("us", 1)]);
}

#[tokio::test]
async fn an_id_that_is_none_is_refused_before_the_store_is_asked() {
    let t = Testbed::new().await;
    let inbox = t.engine().inbox(CONSUMER);
    let refused = inbox.unseen([Some("a"), None]).await;
    assert!(
        matches!(refused, Err(Error::InvalidKey { .. })),
        "{refused:?}"
    );
    let nameless = t.engine().inbox("").unseen([1]).await;
    assert!(
        matches!(nameless, Err(Error::Misuse { .. })),
        "{nameless:?}"
    );
    let nowhere = idem::inbox(CONSUMER).unseen([1]).await;
    assert_eq!(nowhere, Err(Error::NoEngine));
}

#[tokio::test]
async fn a_store_that_cannot_look_at_many_says_so() {
    assert!(Blind::default().lacks().contains(&Capability::Standings));
    let engine = Engine::builder(Blind::default()).build().await.unwrap();
    let inbox = engine.inbox(CONSUMER);
    let received = inbox.receive(&1, Runs::default().handle()).await;
    assert_eq!(received, Received::First(1));
    let Err(Error::Store(error)) = inbox.unseen([1, 2]).await else {
        panic!("it has no way");
    };
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(!error.is_ambiguous());
}

#[tokio::test]
async fn an_answer_that_is_too_short_loses_no_id() {
    let engine = Engine::builder(Short::default()).build().await.unwrap();
    let refused = engine.inbox(CONSUMER).unseen([1, 2]).await;
    assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
}
