//! Forgetting a record, with a front that may remember.

use std::time::Duration;

use idem::record::Note;
use idem::store::{
    Holder, MarkUnknown, Reserved, Settle, Store as _, StoreAdmin, TieredStore, Written,
};
use idem::transition::Settlement;
use idem::{StoreErrorKind, UnknownReason};

use super::fakes::Fake;
use super::{SECOND, TTL, Tiers, answer, request};

async fn settle(t: &Tiers, settlement: Settlement) -> Settle {
    let id = request(1, 1).id;
    let seen = admin(&t.store).get(&id).await.unwrap().unwrap();
    Settle {
        state: None,
        id,
        fence: seen.record.fence,
        settlement,
        force: false,
        ttl_us: Some(TTL),
        grace_us: 5 * SECOND,
        note: Note::new("ann", "a refund").unwrap(),
    }
}

fn admin(store: &TieredStore) -> &dyn StoreAdmin {
    store.admin().unwrap()
}

async fn forget(t: &Tiers) -> Written {
    let request = settle(t, Settlement::Forgotten).await;
    admin(&t.store).settle(&request).await.unwrap()
}

#[tokio::test]
async fn a_forgotten_answer_is_not_replayed_and_the_next_one_is_after_an_hour() {
    let t = Tiers::new().await;
    t.filled(1, None).await;
    assert_eq!(forget(&t).await, Written::Done);
    let holder = t.win(&request(1, 3)).await;
    assert_eq!(t.complete(holder, None).await, Ok(Written::Done));
    for claim in 4..7 {
        let asked = t.back.reserves();
        t.reserve(&request(1, claim)).await;
        assert_eq!(t.back.reserves(), asked + 1, "it is blocked");
    }
    t.advance(3_660 * SECOND);
    t.reserve(&request(1, 7)).await;
    let asked = t.back.reserves();
    let reply = t.reserve(&request(1, 8)).await;
    assert!(matches!(reply, Reserved::Completed { answer: a, .. } if a == answer(1)));
    assert_eq!(t.back.reserves(), asked);
}

#[tokio::test]
async fn a_fill_that_was_under_way_does_not_bring_a_forgotten_answer_back() {
    // While the block stands, when it has just ended, and later.
    for late_us in [
        0,
        SECOND,
        61 * SECOND,
        3_599 * SECOND,
        3_660 * SECOND,
        4 * 3_600 * SECOND,
    ] {
        let t = Tiers::new().await;
        t.front.delays_fills();
        let holder = t.win(&request(1, 1)).await;
        t.complete(holder, None).await.unwrap();
        t.reserve(&request(1, 2)).await;
        assert_eq!(forget(&t).await, Written::Done);
        t.advance(late_us);
        assert_eq!(t.front.land().await, 1);
        let reply = t.reserve(&request(1, 3)).await;
        assert!(matches!(reply, Reserved::Won(_)), "{late_us}: {reply:?}");
    }
}

#[tokio::test]
async fn with_the_front_down_forgetting_is_refused_and_changes_nothing() {
    let t = Tiers::new().await;
    let first = t.filled(1, None).await;
    t.front.fails();
    let request_to_forget = settle(&t, Settlement::Forgotten).await;
    let error = admin(&t.store)
        .settle(&request_to_forget)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient);
    assert!(!error.is_ambiguous());
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    t.front.is_up();
    assert_eq!(t.reserve(&request(1, 3)).await, first);
    let id = request(1, 1).id;
    assert_eq!(admin(&t.store).audit(&id).await.unwrap(), []);
    // And once it is back, it is done.
    assert_eq!(forget(&t).await, Written::Done);
    assert_eq!(admin(&t.store).audit(&id).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn with_a_silent_front_forgetting_is_refused_in_a_second() {
    let t = Tiers::new().await;
    t.filled(1, None).await;
    t.front.hangs();
    let request = settle(&t, Settlement::Forgotten).await;
    let started = tokio::time::Instant::now();
    let error = admin(&t.store).settle(&request).await.unwrap_err();
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert!(started.elapsed() < Duration::from_millis(1_010));
}

#[tokio::test]
async fn before_the_store_is_known_forgetting_is_refused() {
    let t = Tiers::new().await;
    t.filled(1, None).await;
    let unpinned = TieredStore::new(Fake::new(&t.clock), t.back.clone());
    let request = settle(&t, Settlement::Forgotten).await;
    let error = admin(&unpinned).settle(&request).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("nothing was changed"), "{error}");
}

/// What is not completed has no answer in the front, so an outage of it is in
/// nobody's way.
#[tokio::test]
async fn a_doubt_is_settled_also_with_the_front_down() {
    let t = Tiers::new().await;
    let holder: Holder = t.win(&request(1, 1)).await;
    let unknown = MarkUnknown {
        holder,
        reason: UnknownReason::Panicked,
        undecided_retry_us: None,
    };
    t.store.mark_unknown(&unknown).await.unwrap();
    t.front.fails();
    let request_to_settle = settle(&t, Settlement::Done(answer(1))).await;
    let written = admin(&t.store).settle(&request_to_settle).await;
    assert_eq!(written, Ok(Written::Done));
    t.front.is_up();
    let reply = t.another().await.reserve(&request(1, 2)).await.unwrap();
    assert!(matches!(reply, Reserved::Completed { answer: a, .. } if a == answer(1)));
}
