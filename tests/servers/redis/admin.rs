//! The side for operators.

use std::time::Duration;

use idem::StoreErrorKind;
use idem::record::{Note, Standing, UnknownReason};
use idem::store::{
    Capability, Count, MarkUnknown, RedisStore, Scan, Settle, Store as _, StoreAdmin as _, Written,
};
use idem::testing::ManualClock;
use idem::transition::Settlement;

use super::{GRACE, answer, both, id, opened, prefix, rerun, single, won};

fn scan(standing: Standing) -> Scan {
    Scan {
        standing,
        operation: None,
        grace_us: GRACE,
        after: None,
        limit: 10,
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, on both servers")]
async fn open_records_are_found_in_order_in_every_bucket_and_settled_once_with_a_note() {
    for url in both() {
        let clock = ManualClock::new();
        let store = RedisStore::options()
            .prefix(prefix())
            .clock(clock.clone())
            .connect(&url)
            .await
            .unwrap();
        let ids = async |request: Scan| {
            let page = store.scan(&request).await.unwrap();
            let ids: Vec<_> = page.records.iter().map(|record| record.id).collect();
            (ids, page.next)
        };
        // Out of order, and over the whole range of buckets.
        let mut holders = Vec::new();
        for key in [255, 0, 31, 32, 128] {
            holders.push(won(&store, &rerun(key, 1)).await);
        }
        let running = scan(Standing::InProgress);
        let all = [0, 31, 32, 128, 255].map(id);
        assert_eq!(ids(running.clone()).await, (all.to_vec(), None));

        // Page by page, each record once.
        let mut paged = Vec::new();
        let mut after = None;
        loop {
            let page = Scan {
                after,
                limit: 2,
                ..running.clone()
            };
            let (some, next) = ids(page).await;
            assert!(some.len() <= 2);
            paged.extend(some);
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(paged, all);

        let other = Scan {
            operation: Some("shop.refund".to_owned()),
            ..running.clone()
        };
        assert_eq!(ids(other).await, (Vec::new(), None));

        let unknown = MarkUnknown {
            holder: holders[0],
            reason: UnknownReason::Panicked,
            undecided_retry_us: None,
        };
        store.mark_unknown(&unknown).await.unwrap();
        store.complete(&answer(holders[1])).await.unwrap();
        let still = [31, 32, 128].map(id).to_vec();
        assert_eq!(ids(running.clone()).await, (still.clone(), None));
        assert_eq!(ids(scan(Standing::Unknown)).await, (vec![id(255)], None));

        clock.advance(Duration::from_secs(60));
        assert_eq!(ids(running).await, (Vec::new(), None));
        assert_eq!(ids(scan(Standing::Lapsed)).await, (still, None));
        let count = Count {
            grace_us: GRACE,
            finished: true,
        };
        let counts = store.count(&count).await.unwrap();
        assert_eq!(
            (
                counts.in_progress,
                counts.lapsed,
                counts.unknown,
                counts.finished
            ),
            (0, 3, 1, None)
        );
        let minute = counts.oldest_started_us.map(|at| counts.now_us - at);
        assert_eq!(minute, Some(60_000_000));
        assert_eq!(counts.oldest_unknown_us, counts.oldest_started_us);

        let settle = Settle {
            id: id(255),
            fence: holders[0].fence,
            settlement: Settlement::NotDone,
            force: false,
            ttl_us: None,
            grace_us: GRACE,
            note: Note::new("ann", "the bank has no \"charge\"").unwrap(),
        };
        assert_eq!(store.settle(&settle).await.unwrap(), Written::Done);
        assert_eq!(store.settle(&settle).await.unwrap(), Written::Superseded);
        assert_eq!(ids(scan(Standing::Unknown)).await, (Vec::new(), None));
        let audit = store.audit(&id(255)).await.unwrap();
        assert_eq!(audit.len(), 1);
        assert_eq!(audit[0].note, settle.note);
        assert_eq!(
            (audit[0].at_us, audit[0].fence),
            (counts.now_us, settle.fence)
        );
        assert_eq!(audit[0].became, settle.settlement.code());
        let seen = store.get(&id(255)).await.unwrap().unwrap();
        assert!(seen.record.fence > settle.fence);
        assert_eq!(store.get(&id(7)).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_list_of_what_is_finished_is_refused_with_a_reason() {
    let store = opened(&single(), &prefix()).await;
    assert_eq!(store.lacks(), [Capability::ListFinished, Capability::Sweep]);
    for standing in [Standing::Completed, Standing::Tombstone, Standing::Released] {
        let error = store.scan(&scan(standing)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
        assert!(error.to_string().contains("by its id"), "{error}");
    }
}
