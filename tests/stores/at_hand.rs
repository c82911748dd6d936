//! What a store has at hand: finished records, at once, and nothing else.

use std::time::Duration;

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Recorded};
use idem::store::{
    Complete, Ending, Holder, MemoryStore, Reserve, Reserved, SqliteStore, Store, Takeover,
};
use idem::testing::ManualClock;

const TTL: Duration = Duration::from_secs(60);

fn request(key: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([key; 32]),
        operation: "shop.charge".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([key; 16]),
        lease_us: 1_000_000,
        grace_us: 0,
        takeover: Takeover::Refuse,
        max_takeovers: 0,
        version: None,
    }
}

async fn complete(store: &dyn Store, request: &Reserve) -> Recorded {
    let Reserved::Won(won) = store.reserve(request).await.unwrap() else {
        panic!("the key is not free");
    };
    assert_eq!(store.at_hand(&request.id, &request.fingerprint), None);
    let answer = Recorded::new(&request.id, "json", false, b"42".to_vec());
    let completion = Complete {
        holder: Holder {
            id: request.id,
            claim: request.claim,
            fence: won.fence,
        },
        ending: Ending::Answer(answer.clone()),
        ttl_us: Some(i64::try_from(TTL.as_micros()).unwrap()),
    };
    assert!(store.complete(&completion).await.unwrap().is_done());
    answer
}

async fn keeps_the_contract(store: &dyn Store, clock: &ManualClock) {
    let request = request(1);
    assert_eq!(store.at_hand(&request.id, &request.fingerprint), None);
    let recorded = complete(store, &request).await;
    let other = Fingerprint::from_bytes([2; 32]);
    assert_eq!(store.at_hand(&request.id, &other), None, "another payload");
    let told = store.at_hand(&request.id, &request.fingerprint);
    let Some(Reserved::Completed {
        answer, left_us, ..
    }) = told
    else {
        panic!("expected the answer at hand, got {told:?}");
    };
    assert_eq!(answer, recorded);
    assert_eq!(left_us, Some(i64::try_from(TTL.as_micros()).unwrap()));
    clock.advance(TTL + Duration::from_micros(1));
    assert_eq!(
        store.at_hand(&request.id, &request.fingerprint),
        None,
        "past its TTL"
    );
}

#[tokio::test]
async fn in_memory() {
    let clock = ManualClock::new();
    keeps_the_contract(&MemoryStore::with_clock(clock.clone()), &clock).await;
}

#[tokio::test]
async fn in_a_sqlite_file() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::new();
    let options = SqliteStore::options(folder.path().join("store.db")).clock(clock.clone());
    keeps_the_contract(&options.open().await.unwrap(), &clock).await;
}
