//! The guards of the statements themselves, below any engine.

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Recorded};
use idem::store::{
    Complete, Ending, Entrance, Holder, Meta, Reserve, Reserved, Takeover, Transactional, Written,
};

use crate::world::{Kind, World};

fn request() -> Reserve {
    Reserve {
        id: RecordId::from_bytes([7; 32]),
        operation: "guards".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([1; 16]),
        lease_us: 1_000_000,
        grace_us: 0,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

fn complete(holder: Holder) -> Complete {
    let answer = Recorded::new(&holder.id, "json", false, b"1".to_vec());
    Complete {
        holder,
        ending: Ending::Answer(answer),
        ttl_us: Some(1_000_000),
    }
}

#[tokio::test]
async fn an_answer_is_recorded_under_its_own_claim_and_fence_only() {
    for &kind in Kind::ALL {
        let world = World::new(kind).await;
        let asked = Meta {
            format: String::new(),
            instance: [0; 16],
            secret_check: [0; 32],
        };
        // It is pinned already: this tells as what.
        let instance = world.store.get().pin(&asked).await.unwrap().instance;
        let store: &dyn Transactional = world.store.get().transactional().unwrap();
        let mut tx = world.begin().await;
        let won = store.reserve_in(tx.session(), &instance, &request()).await;
        let Ok(Entrance::Answered(Reserved::Won(won))) = won else {
            panic!("{kind:?}: {won:?}");
        };
        let holder = Holder {
            id: request().id,
            claim: request().claim,
            fence: won.fence,
        };
        let strangers = [
            Holder {
                claim: Claim::from_bytes([2; 16]),
                ..holder
            },
            Holder {
                fence: holder.fence + 1,
                ..holder
            },
            Holder {
                id: RecordId::from_bytes([8; 32]),
                ..holder
            },
        ];
        for stranger in strangers {
            let written = store.complete_in(tx.session(), &complete(stranger)).await;
            assert!(!written.unwrap().is_done(), "{kind:?}: {stranger:?}");
        }
        let written = store.complete_in(tx.session(), &complete(holder)).await;
        assert_eq!(written, Ok(Written::Done), "{kind:?}");
        // What is finished is not written again.
        let written = store.complete_in(tx.session(), &complete(holder)).await;
        assert!(!written.unwrap().is_done(), "{kind:?}");
        tx.commit().await;
    }
}
