//! What the tests of the side for operators ask, the same of each SQL store.

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Note, Standing};
use idem::store::{Count, Reserve, Scan, Settle, Store, StoreAdmin, Takeover, Written};
use idem::transition::Settlement;

const LEASE: i64 = 30_000_000;
const GRACE: i64 = 5_000_000;

pub(crate) fn rerun(claim: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([7; 32]),
        operation: "shop.charge".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: LEASE,
        grace_us: GRACE,
        takeover: Takeover::Rerun,
        max_takeovers: 5,
        version: None,
    }
}

pub(crate) fn scan(standing: Standing) -> Scan {
    Scan {
        standing,
        operation: None,
        grace_us: GRACE,
        after: None,
        limit: 10,
    }
}

pub(crate) async fn standing(store: &impl StoreAdmin, standing: Standing) -> usize {
    store.scan(&scan(standing)).await.unwrap().records.len()
}

/// Settles the one record as not done.
pub(crate) async fn not_done(store: &impl StoreAdmin) -> Settle {
    let seen = store.get(&rerun(1).id).await.unwrap().unwrap();
    Settle {
        state: None,
        id: seen.record.id,
        fence: seen.record.fence,
        settlement: Settlement::NotDone,
        force: true,
        ttl_us: None,
        grace_us: GRACE,
        note: Note::new("ops", "looked at the gateway").unwrap(),
    }
}

/// Reserves, takes the lease away by `unlease`, and settles the attempt.
pub(crate) async fn shows_an_attempt_without_a_lease_as_unknown(
    store: &(impl Store + StoreAdmin),
    unlease: impl Future<Output = ()>,
) {
    store.reserve(&rerun(1)).await.unwrap();
    unlease.await;
    assert_eq!(standing(store, Standing::Unknown).await, 1);
    assert_eq!(standing(store, Standing::InProgress).await, 0);
    assert_eq!(standing(store, Standing::Lapsed).await, 0);
    let count = Count {
        grace_us: GRACE,
        finished: false,
    };
    let counts = store.count(&count).await.unwrap();
    assert_eq!(
        (counts.in_progress, counts.lapsed, counts.unknown),
        (0, 0, 1)
    );
    assert_eq!(counts.oldest_started_us, None);
    let request = Settle {
        force: false,
        ..not_done(store).await
    };
    assert_eq!(store.settle(&request).await.unwrap(), Written::Done);
}
