//! A lease is the holder's to extend, in batches.

use super::bench::{
    Bench, GRACE, LAPSE, LEASE, SECOND, YEARS, done, id, in_progress, other_claim, other_fence,
    text, unknown,
};
use crate::record::{TombstoneReason, UnknownReason};
use crate::store::{Holder, Lease, Reserved, Written};

super::topic!("renew":
    a_renewed_attempt_goes_on,
    a_lease_counts_from_its_renewal,
    a_lapsed_attempt_may_be_renewed,
    another_claim_renews_nothing,
    another_fence_renews_nothing,
    a_superseded_holder_renews_nothing,
    an_absent_record_is_not_held,
    an_ended_attempt_is_not_held,
    a_batch_is_answered_in_order,
    each_lease_has_its_own_length,
    a_batch_may_be_empty,
    sent_twice_it_is_still_held,
    a_connection_is_opened_again,
);

async fn a_renewed_attempt_goes_on(b: &Bench) {
    let attempt = b.take(1).await;
    for _ in 0..10 {
        b.advance(LEASE - SECOND);
        assert!(b.renew(attempt.holder).await);
    }
    b.advance(LEASE);
    assert_eq!(b.reserve(&b.rerun(1)).await, in_progress(GRACE));
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn a_lease_counts_from_its_renewal(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LEASE / 2);
    for lease_us in [10 * LEASE, SECOND] {
        let lease = Lease {
            holder: attempt.holder,
            lease_us,
        };
        assert_eq!(b.renew_all(&[lease]).await, [true]);
        assert_eq!(
            b.look(1).await,
            in_progress(lease_us + GRACE),
            "from now, whether longer or shorter than before"
        );
    }
}

async fn a_lapsed_attempt_may_be_renewed(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(YEARS);
    assert!(b.renew(attempt.holder).await, "nobody took over");
    assert_eq!(b.reserve(&b.rerun(1)).await, in_progress(LEASE + GRACE));
}

async fn another_claim_renews_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(SECOND);
    assert!(!b.renew(other_claim(attempt.holder)).await);
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE - SECOND));
}

async fn another_fence_renews_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(SECOND);
    for by in [-1, 1] {
        assert!(!b.renew(other_fence(attempt.holder, by)).await);
    }
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE - SECOND));
}

async fn a_superseded_holder_renews_nothing(b: &Bench) {
    let old = b.take(1).await;
    b.advance(LAPSE);
    b.win(&b.rerun(1)).await;
    b.advance(SECOND);
    assert!(!b.renew(old.holder).await);
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE - SECOND));
}

async fn an_absent_record_is_not_held(b: &Bench) {
    let holder = b.take(1).await.holder;
    assert!(
        !b.renew(Holder {
            id: id(2),
            ..holder
        })
        .await
    );
    assert_eq!(b.take(2).await.won.attempt, 1, "it was not created");
}

async fn an_ended_attempt_is_not_held(b: &Bench) {
    let answered = b.answered(1, &text(1, "a")).await;
    assert!(!b.renew(answered.holder).await);
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(1, "a")));

    let buried = b.take(2).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(buried.holder, reason).await, Written::Done);
    assert!(!b.renew(buried.holder).await);
    assert_eq!(b.look(2).await, Reserved::Tombstone { reason });

    let marked = b.take(3).await;
    let reason = UnknownReason::Failed;
    assert_eq!(b.mark_unknown(marked.holder, reason).await, Written::Done);
    assert!(!b.renew(marked.holder).await);
    assert_eq!(b.look(3).await, unknown(reason));

    let released = b.take(4).await;
    assert_eq!(b.release(released.holder).await, Written::Done);
    assert!(!b.renew(released.holder).await);
    assert_eq!(b.take(4).await.won.attempt, 2);
}

fn lease(holder: Holder) -> Lease {
    Lease {
        holder,
        lease_us: LEASE,
    }
}

async fn a_batch_is_answered_in_order(b: &Bench) {
    let mut leases = Vec::new();
    let mut expected = Vec::new();
    for key in 0..30 {
        let holder = b.take(key).await.holder;
        match key % 3 {
            0 => leases.push(lease(holder)),
            1 => leases.push(lease(other_claim(holder))),
            _ => leases.push(lease(Holder {
                id: id(key + 100),
                ..holder
            })),
        }
        expected.push(key % 3 == 0);
    }
    b.advance(SECOND);
    assert_eq!(b.renew_all(&leases).await, expected);
    leases.reverse();
    expected.reverse();
    assert_eq!(b.renew_all(&leases).await, expected);
    for key in 0..30 {
        let left = LEASE + GRACE - if key % 3 == 0 { 0 } else { SECOND };
        assert_eq!(b.look(key).await, in_progress(left), "key {key}");
    }
}

async fn each_lease_has_its_own_length(b: &Bench) {
    let mut leases = Vec::new();
    for key in 1..=5 {
        leases.push(Lease {
            holder: b.take(key).await.holder,
            lease_us: i64::from(key) * SECOND,
        });
    }
    assert_eq!(b.renew_all(&leases).await, [true; 5]);
    for key in 1..=5 {
        assert_eq!(
            b.look(key).await,
            in_progress(i64::from(key) * SECOND + GRACE)
        );
    }
}

async fn a_batch_may_be_empty(b: &Bench) {
    assert_eq!(b.renew_all(&[]).await, [false; 0]);
}

async fn sent_twice_it_is_still_held(b: &Bench) {
    let attempt = b.take(1).await;
    let twice = [lease(attempt.holder), lease(attempt.holder)];
    assert_eq!(b.renew_all(&twice).await, [true, true]);
    assert_eq!(b.renew_all(&twice).await, [true, true]);
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
}

async fn a_connection_is_opened_again(b: &Bench) {
    let attempt = b.take(1).await;
    let mut first = b.renewer().await;
    let mut second = b.renewer().await;
    for renewer in [&mut first, &mut second] {
        b.advance(SECOND);
        let held = done(renewer.renew(&[lease(attempt.holder)]).await);
        assert_eq!(held, [true]);
        assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
    }
    drop(first);
    assert_eq!(done(second.renew(&[lease(attempt.holder)]).await), [true]);
}
