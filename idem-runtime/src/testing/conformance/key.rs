//! Records do not touch each other.

use super::bench::{Bench, GRACE, LAPSE, LEASE, TTL, done, in_progress, unknown};
use crate::identity::RecordId;
use crate::record::{Recorded, UnknownReason};
use crate::store::{GiveBack, Holder, Lease, Reserve, Reserved, Written};

super::topic!("key":
    ids_that_look_alike_are_different_keys,
    an_end_touches_its_own_record_only,
    one_claim_may_stand_in_two_records,
    a_holder_of_one_key_holds_no_other,
);

/// Ids that a text column, a pattern or a trimming comparison would confuse.
fn alike() -> Vec<RecordId> {
    let mut ids = vec![[0; 32], [0xff; 32], [b' '; 32], [b'%'; 32], [b'_'; 32]];
    for (at, byte) in [(0, 1), (15, 0), (16, 0x80), (31, 0), (31, b' '), (31, b'b')] {
        let mut id = [b'a'; 32];
        id[at] = byte;
        ids.push(id);
    }
    ids.push([b'a'; 32]);
    ids.push([b'A'; 32]);
    ids.push([0x27; 32]);
    // No text in any encoding.
    ids.push([0xc3; 32]);
    ids.into_iter().map(RecordId::from_bytes).collect()
}

async fn ids_that_look_alike_are_different_keys(b: &Bench) {
    let ids = alike();
    let mut attempts = Vec::new();
    for &id in &ids {
        let request = Reserve { id, ..b.request(0) };
        attempts.push(b.win(&request).await);
    }
    for (&id, attempt) in ids.iter().zip(&attempts) {
        assert_eq!(attempt.won.attempt, 1);
        let answer = Recorded::new(&id, "json", false, id.to_hex().into_bytes());
        assert_eq!(b.answer(attempt.holder, &answer).await, Written::Done);
    }
    for &id in &ids {
        let reply = b.reserve(&Reserve { id, ..b.request(0) }).await;
        let expected = Recorded::new(&id, "json", false, id.to_hex().into_bytes());
        assert!(
            matches!(&reply, Reserved::Completed { answer, .. } if *answer == expected),
            "{id:?}: {reply:?}"
        );
    }
}

async fn an_end_touches_its_own_record_only(b: &Bench) {
    for key in 0..6 {
        b.take(key).await;
    }
    let stands = in_progress(LEASE + GRACE);
    let ended = [b.take(10).await, b.take(11).await, b.take(12).await];
    let answer = Recorded::new(&ended[0].holder.id, "json", false, Vec::new());
    assert_eq!(b.answer(ended[0].holder, &answer).await, Written::Done);
    assert_eq!(b.release(ended[1].holder).await, Written::Done);
    assert_eq!(b.give_back(ended[2].holder).await, Written::Done);
    let marked = b.take(13).await;
    let reason = UnknownReason::Failed;
    assert_eq!(b.mark_unknown(marked.holder, reason).await, Written::Done);
    for key in 0..6 {
        assert_eq!(b.look(key).await, stands, "key {key}");
    }
    b.advance(LAPSE);
    assert_eq!(b.look(0).await, unknown(UnknownReason::Lapsed));
    b.win(&b.rerun(1)).await;
    b.advance(TTL);
    let swept = b.sweep().await;
    assert!(swept == 3 || !b.counts_sweeps(), "{swept} were swept");
    for key in 2..6 {
        // Still to be taken over, each for itself.
        assert_eq!(b.win(&b.rerun(key)).await.won.attempt, 2);
    }
}

async fn one_claim_may_stand_in_two_records(b: &Bench) {
    let first = b.request(1);
    let second = Reserve {
        claim: first.claim,
        ..b.request(2)
    };
    let one = b.win(&first).await;
    let two = b.win(&second).await;
    assert_eq!(b.release(one.holder).await, Written::Done);
    assert!(b.renew(two.holder).await, "it was the other one's release");
    let give = GiveBack {
        id: second.id,
        claim: second.claim,
        ttl_us: None,
    };
    let written = done(b.renewer().await.give_back(&give).await);
    assert_eq!(written, Written::Done);
}

async fn a_holder_of_one_key_holds_no_other(b: &Bench) {
    let one = b.take(1).await;
    let two = b.take(2).await;
    let crossed = Holder {
        id: two.holder.id,
        ..one.holder
    };
    b.nothing_moves(2, crossed, "a neighbour", &in_progress(LEASE + GRACE))
        .await;
    let lease = |holder| Lease {
        holder,
        lease_us: LEASE,
    };
    let held = b
        .renew_all(&[lease(one.holder), lease(crossed), lease(two.holder)])
        .await;
    assert_eq!(held, [true, false, true]);
}
