//! The side for operators.

use std::time::Duration;

use idem::StoreErrorKind;
use idem::identity::RecordId;
use idem::record::{Note, Standing, State, UnknownReason};
use idem::store::{
    Audited, Capability, Count, MarkUnknown, RedisStore, Release, Reserve, Scan, Settle,
    Store as _, StoreAdmin as _, Written,
};
use idem::testing::ManualClock;
use idem::transition::Settlement;

use super::{GRACE, answer, both, id, opened, prefix, raw, rerun, single, won};

fn scan(standing: Standing) -> Scan {
    Scan {
        standing,
        operation: None,
        grace_us: GRACE,
        after: None,
        limit: 10,
    }
}

async fn with_clock(url: &str, clock: &ManualClock) -> RedisStore {
    let options = RedisStore::options().prefix(prefix()).clock(clock.clone());
    options.connect(url).await.unwrap()
}

async fn ids(store: &RedisStore, request: &Scan) -> (Vec<RecordId>, Option<RecordId>) {
    let page = store.scan(request).await.unwrap();
    let ids = page.records.iter().map(|record| record.id).collect();
    (ids, page.next)
}

#[tokio::test]
async fn open_records_are_found_in_order_in_every_bucket() {
    for url in both() {
        let store = opened(&url, &prefix()).await;
        // Out of order, and over the whole range of buckets.
        for key in [255, 0, 31, 32, 128] {
            won(&store, &rerun(key, 1)).await;
        }
        let running = scan(Standing::InProgress);
        let all = [0, 31, 32, 128, 255].map(id);
        assert_eq!(ids(&store, &running).await, (all.to_vec(), None));

        // Page by page, each record once.
        let mut paged = Vec::new();
        let mut after = None;
        loop {
            let page = Scan {
                after,
                limit: 2,
                ..running.clone()
            };
            let (some, next) = ids(&store, &page).await;
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
            ..running
        };
        assert_eq!(ids(&store, &other).await, (Vec::new(), None));
    }
}

#[tokio::test]
async fn records_of_one_bucket_are_read_page_by_page_in_the_order_of_their_ids() {
    let store = opened(&single(), &prefix()).await;
    let mut all = Vec::new();
    for last in [9, 0, 200] {
        let mut bytes = [7; 32];
        bytes[31] = last;
        let request = Reserve {
            id: RecordId::from_bytes(bytes),
            ..rerun(7, 1)
        };
        all.push(won(&store, &request).await.id);
    }
    all.sort();
    let mut after = None;
    for (at, id) in all.iter().enumerate() {
        let page = Scan {
            after,
            limit: 1,
            ..scan(Standing::InProgress)
        };
        after = (at < 2).then_some(*id);
        assert_eq!(ids(&store, &page).await, (vec![*id], after));
    }
}

#[tokio::test]
async fn what_is_stuck_is_counted_and_settled_once_with_a_note() {
    for url in both() {
        let clock = ManualClock::new();
        let store = with_clock(&url, &clock).await;
        let mut holders = Vec::new();
        for key in 0..5 {
            holders.push(won(&store, &rerun(key, 1)).await);
        }
        let unknown = MarkUnknown {
            holder: holders[0],
            reason: UnknownReason::Panicked,
            undecided_retry_us: None,
        };
        store.mark_unknown(&unknown).await.unwrap();
        store.complete(&answer(holders[1])).await.unwrap();
        let still = [2, 3, 4].map(id).to_vec();
        let (running, lapsed) = (scan(Standing::InProgress), scan(Standing::Lapsed));
        let in_doubt = scan(Standing::Unknown);
        assert_eq!(ids(&store, &running).await, (still.clone(), None));
        assert_eq!(ids(&store, &in_doubt).await, (vec![id(0)], None));

        clock.advance(Duration::from_secs(60));
        assert_eq!(ids(&store, &running).await, (Vec::new(), None));
        assert_eq!(ids(&store, &lapsed).await, (still, None));
        let count = Count {
            grace_us: GRACE,
            finished: true,
        };
        let counts = store.count(&count).await.unwrap();
        let told = (counts.in_progress, counts.lapsed, counts.unknown);
        assert_eq!((told, counts.finished), ((0, 3, 1), None));
        let age = counts.oldest_started_us.map(|at| counts.now_us - at);
        assert_eq!(age, Some(60_000_000));
        assert_eq!(counts.oldest_unknown_us, counts.oldest_started_us);

        let settle = Settle {
            state: None,
            id: id(0),
            fence: holders[0].fence,
            settlement: Settlement::NotDone,
            force: false,
            ttl_us: None,
            grace_us: GRACE,
            note: Note::new("ann", "the bank has no \"charge\"").unwrap(),
        };
        assert_eq!(store.settle(&settle).await.unwrap(), Written::Done);
        assert_eq!(store.settle(&settle).await.unwrap(), Written::Superseded);
        assert_eq!(ids(&store, &in_doubt).await, (Vec::new(), None));
        let expected = Audited::of(&settle, State::Unknown, counts.now_us);
        assert_eq!(store.audit(&id(0)).await.unwrap(), [expected]);
        let seen = store.get(&id(0)).await.unwrap().unwrap();
        assert!(seen.record.fence > settle.fence);
        assert_eq!(store.get(&id(7)).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_list_of_what_is_finished_is_refused_with_a_reason() {
    let store = opened(&single(), &prefix()).await;
    assert!(store.lacks().contains(&Capability::ListFinished));
    for standing in [Standing::Completed, Standing::Tombstone, Standing::Released] {
        let error = store.scan(&scan(standing)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
        assert!(error.to_string().contains("by its id"), "{error}");
    }
}

#[tokio::test]
async fn what_has_ended_is_in_no_index_of_open_records() {
    let (url, prefix) = (single(), prefix());
    let store = opened(&url, &prefix).await;
    let mut holders = Vec::new();
    for key in 0..3 {
        holders.push(won(&store, &rerun(key, 1)).await);
    }
    let keys: Vec<_> = (0..3)
        .map(|key| format!("{{{prefix}:{key:02x}}}:open"))
        .collect();
    let indexed = async || {
        let mut counts = Vec::new();
        for key in &keys {
            counts.push(raw::<u32>(&url, &["ZCARD", key]).await);
        }
        counts
    };
    assert_eq!(indexed().await, [1, 1, 1]);
    store.complete(&answer(holders[0])).await.unwrap();
    let released = Release {
        holder: holders[1],
        ttl_us: None,
        probed: false,
    };
    store.release(&released).await.unwrap();
    let unknown = MarkUnknown {
        holder: holders[2],
        reason: UnknownReason::Panicked,
        undecided_retry_us: None,
    };
    store.mark_unknown(&unknown).await.unwrap();
    assert_eq!(indexed().await, [0, 0, 1]);
}
