//! What may stand at the key already.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::record::{Note, Standing};
use idem::store::{Scan, Settle, Written};
use idem::transition::Settlement;
use idem::{Error, OnUnknown, Recovered, UnknownReason, on_error};

use crate::operation::{Act, Failure, Order};
use crate::world::{Kind, World};

const TTL: Duration = Duration::from_secs(3600);

/// An ordinary call of the same operation and key; its body writes no row.
async fn ordinary(order: &Order, on_unknown: OnUnknown) -> Result<u32, Failure> {
    order
        .engine
        .call("tx.place", &order.key, TTL)
        .payload(&order.amount)
        .on_unknown(on_unknown)
        .on_error(on_error::Release)
        .run(async { Ok(7) })
        .await
}

#[tokio::test]
async fn an_answer_is_shared_with_ordinary_calls() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        assert_eq!(
            ordinary(&order, OnUnknown::Refuse).await,
            Ok(42),
            "{kind:?}"
        );

        let other = world.order("b", Act::Answer);
        assert_eq!(ordinary(&other, OnUnknown::Refuse).await, Ok(7), "{kind:?}");
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&other).await, Ok(7), "{kind:?}");
        tx.commit().await;
        assert_eq!(world.rows("b").await, 0, "{kind:?}");
    }
}

#[tokio::test]
async fn another_payload() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        let mut tx = world.begin().await;
        let other = Order {
            amount: 43,
            ..order
        };
        let refused = tx.place(&other).await;
        let Err(Failure::Idem(Error::PayloadMismatch { differs })) = refused else {
            panic!("{kind:?}: {refused:?}");
        };
        assert_eq!(differs, ["order.amount"], "{kind:?}");
        tx.commit().await;
    }
}

/// A released record runs, and its row is taken by the guarded write.
#[tokio::test]
async fn a_released_record_runs() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let released: Result<u32, Failure> = world
            .engine
            .call("tx.place", &order.key, TTL)
            .payload(&order.amount)
            .on_error(on_error::Release)
            .run(async { Err(Failure::Declined) })
            .await;
        assert_eq!(released, Err(Failure::Declined), "{kind:?}");
        for ending in ["rolled back", "committed"] {
            let mut tx = world.begin().await;
            assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
            if ending == "committed" {
                tx.commit().await;
            } else {
                tx.rollback().await;
            }
        }
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}

/// On an old row, too, what is left unfinished never lapses: it is unknown.
#[tokio::test]
async fn a_released_record_that_is_left_unfinished_is_unknown() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Decline);
        let released: Result<u32, Failure> = world
            .engine
            .call("tx.place", &order.key, TTL)
            .payload(&order.amount)
            .on_error(on_error::Release)
            .run(async { Err(Failure::Declined) })
            .await;
        assert_eq!(released, Err(Failure::Declined), "{kind:?}");
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Err(Failure::Declined), "{kind:?}");
        tx.commit().await;
        let refused = ordinary(&order, OnUnknown::Refuse).await;
        assert!(
            matches!(refused, Err(Failure::Idem(Error::UnknownOutcome { .. }))),
            "{kind:?}: {refused:?}"
        );
    }
}

/// An answer whose TTL is over counts as absent.
#[tokio::test]
async fn an_expired_record_runs() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Answer);
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        let records = if kind.is_sqlite() {
            "idem_records".to_owned()
        } else {
            world.table.replace("orders", "records")
        };
        let mut tx = world.begin().await;
        tx.execute(&format!("update {records} set expires_us = 1"))
            .await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        assert_eq!(world.rows("a").await, 2, "{kind:?}");
        assert_eq!(world.records().await, (0, 1), "{kind:?}");
    }
}

/// What was committed by mistake is unknown to everybody, and is settled like it.
#[tokio::test]
async fn an_unfinished_record_is_unknown_to_ordinary_calls_and_operators() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let order = world.order("a", Act::Decline);
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Err(Failure::Declined), "{kind:?}");
        tx.commit().await;

        for choice in [OnUnknown::Refuse, OnUnknown::Rerun] {
            let refused = ordinary(&order, choice).await;
            assert!(
                matches!(
                    refused,
                    Err(Failure::Idem(Error::UnknownOutcome {
                        reason: UnknownReason::Unfinished,
                        exhausted: false,
                        ..
                    }))
                ),
                "{kind:?}: {refused:?}"
            );
        }
        let admin = world.store.get().admin().unwrap();
        let scan = Scan {
            standing: Standing::Unknown,
            operation: None,
            grace_us: 0,
            after: None,
            limit: 10,
        };
        let page = admin.scan(&scan).await.unwrap();
        let [record] = &page.records[..] else {
            panic!("{kind:?}: {page:?}");
        };
        let settle = Settle {
            state: None,
            id: record.id,
            fence: record.fence,
            settlement: Settlement::NotDone,
            force: false,
            ttl_us: None,
            grace_us: 0,
            note: Note::new("test", "rolled back by hand").unwrap(),
        };
        assert_eq!(
            admin.settle(&settle).await.unwrap(),
            Written::Done,
            "{kind:?}"
        );
        let mut tx = world.begin().await;
        let answer = tx.place(&world.order("a", Act::Answer)).await;
        assert_eq!(answer, Ok(42), "{kind:?}");
        tx.commit().await;
    }
}

#[tokio::test]
async fn an_unfinished_record_is_asked_about_like_others() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        for (name, found) in [("a", Recovered::Done(7)), ("b", Recovered::NotDone)] {
            let mut tx = world.begin().await;
            let declined = tx.place(&world.order(name, Act::Decline)).await;
            assert_eq!(declined, Err(Failure::Declined), "{kind:?}");
            tx.commit().await;

            let probes = AtomicUsize::new(0);
            let probe = async |_| {
                probes.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Failure>(found.clone())
            };
            // At once, as two processes would.
            let (one, two) = tokio::join!(
                world.engine.reconcile("tx.place", probe).run(),
                world.engine.reconcile("tx.place", probe).run(),
            );
            let (one, two) = (one.unwrap(), two.unwrap());
            assert_eq!(probes.into_inner(), 1, "{kind:?}: {one:?} {two:?}");
            let settled = one.done + two.done + one.not_done + two.not_done;
            assert_eq!(settled, 1, "{kind:?}: {one:?} {two:?}");
        }
        for (name, answer) in [("a", 7), ("b", 42)] {
            let mut tx = world.begin().await;
            let order = world.order(name, Act::Answer);
            let mut next = tx.place(&order).await;
            // The pass that came too late may be about to give back what it won.
            while matches!(next, Err(Failure::Idem(Error::InProgress { .. }))) {
                next = tx.place(&order).await;
            }
            assert_eq!(next, Ok(answer), "{kind:?}");
            tx.commit().await;
        }
    }
}

/// The front is not asked, and what it has is no answer.
#[tokio::test]
async fn a_tiered_store_is_the_store_behind() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let engine = world.tiered().build().await.unwrap();
        let order = Order {
            engine,
            ..world.order("a", Act::Answer)
        };
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.rollback().await;
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
        assert_eq!(
            ordinary(&order, OnUnknown::Refuse).await,
            Ok(42),
            "{kind:?}"
        );
    }
}

/// An answer that is too large is done, but cannot be replayed.
#[tokio::test]
async fn an_answer_above_the_limit_is_a_tombstone() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let engine = world.builder().answer_limit(1).build().await.unwrap();
        let order = Order {
            engine,
            ..world.order("a", Act::Answer)
        };
        let mut tx = world.begin().await;
        assert_eq!(tx.place(&order).await, Ok(42), "{kind:?}");
        tx.commit().await;
        let mut tx = world.begin().await;
        let replayed = tx.place(&order).await;
        assert!(
            matches!(replayed, Err(Failure::Idem(Error::NotReplayable { .. }))),
            "{kind:?}: {replayed:?}"
        );
        tx.rollback().await;
        assert_eq!(world.rows("a").await, 1, "{kind:?}");
    }
}
