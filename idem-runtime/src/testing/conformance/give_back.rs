//! A reservation whose body never ran is undone.

use super::bench::{
    Attempt, Bench, GRACE, LAPSE, LEASE, MAX_TAKEOVERS, SECOND, TTL, done, id, in_progress,
    other_claim, other_payload, text, unknown,
};
use crate::record::UnknownReason;
use crate::store::{GiveBack, Holder, Reserved, Written};

super::topic!("give_back":
    a_fresh_key_is_as_if_never_asked_for,
    sent_twice_it_is_already_done,
    sent_twice_after_the_next_caller_it_is_superseded,
    the_fence_need_not_be_known,
    another_claim_gives_nothing_back,
    an_absent_record_is_gone,
    a_lapsed_reservation_is_given_back,
    a_released_key_is_released_again,
    an_expired_answer_is_not_revived,
    a_taken_over_lapse_is_unknown_again,
    a_taken_over_unknown_is_unknown_again,
    a_takeover_given_back_does_not_count,
    an_ended_attempt_is_not_given_back,
    a_lapse_that_others_saw_is_given_back,
);
super::topic!(
    SWEPT,
    "give_back",
    &[crate::store::Capability::Sweep],
    a_row_given_back_expires
);

async fn a_fresh_key_is_as_if_never_asked_for(b: &Bench) {
    let first = b.take(1).await;
    assert_eq!(b.give_back(first.holder).await, Written::Done);
    let next = b.win(&other_payload(b.request(1))).await;
    assert_eq!(next.won.attempt, 1, "the body did not run");
    assert!(!next.won.doubt);
    assert!(next.won.fence > first.won.fence, "a fence is used once");
}

async fn sent_twice_it_is_already_done(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(b.give_back(attempt.holder).await, Written::Done);
    assert_eq!(b.give_back(attempt.holder).await, Written::AlreadyDone);
    assert_eq!(b.take(1).await.won.attempt, 1);
}

async fn sent_twice_after_the_next_caller_it_is_superseded(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(b.give_back(attempt.holder).await, Written::Done);
    let next = b.take(1).await;
    assert_eq!(b.give_back(attempt.holder).await, Written::Superseded);
    assert!(b.renew(next.holder).await, "the next one runs on");
}

async fn the_fence_need_not_be_known(b: &Bench) {
    // The reply that would have told it was lost.
    let request = b.request(1);
    drop(b.reserve(&request).await);
    let give = GiveBack {
        id: request.id,
        claim: request.claim,
        ttl_us: None,
    };
    let written = done(b.renewer().await.give_back(&give).await);
    assert_eq!(written, Written::Done);
    b.take(1).await;
}

async fn another_claim_gives_nothing_back(b: &Bench) {
    let attempt = b.take(1).await;
    let stranger = other_claim(attempt.holder);
    assert_eq!(b.give_back(stranger).await, Written::Superseded);
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn an_absent_record_is_gone(b: &Bench) {
    let holder = b.take(1).await.holder;
    let absent = Holder {
        id: id(2),
        ..holder
    };
    assert_eq!(b.give_back(absent).await, Written::Gone);
    assert_eq!(b.take(2).await.won.attempt, 1);
}

async fn a_lapsed_reservation_is_given_back(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    assert_eq!(b.give_back(attempt.holder).await, Written::Done);
    assert!(!b.take(1).await.won.doubt, "it never ran");
}

async fn a_released_key_is_released_again(b: &Bench) {
    let first = b.take(1).await;
    assert_eq!(b.release(first.holder).await, Written::Done);
    let second = b.take(1).await;
    assert_eq!(second.won.attempt, 2);
    assert_eq!(b.give_back(second.holder).await, Written::Done);
    let third = b.take(1).await;
    assert_eq!(third.won.attempt, 2, "the second never was");
    assert!(third.won.fence > second.won.fence);
}

async fn an_expired_answer_is_not_revived(b: &Bench) {
    b.answered(1, &text(1, "old")).await;
    b.advance(TTL + 1);
    let attempt = b.take(1).await;
    assert_eq!(b.give_back(attempt.holder).await, Written::Done);
    let next = b.take(1).await;
    assert_eq!(next.won.attempt, 1);
    assert_eq!(b.answer(next.holder, &text(1, "new")).await, Written::Done);
}

async fn back_to_unknown(b: &Bench, taken: &Attempt, reason: UnknownReason) {
    assert!(taken.won.doubt);
    assert_eq!(b.give_back(taken.holder).await, Written::Done);
    assert_eq!(
        b.look(1).await,
        unknown(reason),
        "the attempt before may have had an effect"
    );
    assert_eq!(b.give_back(taken.holder).await, Written::AlreadyDone);
    assert_eq!(b.look(1).await, unknown(reason));
    let next = b.win(&b.rerun(1)).await;
    assert_eq!(next.won.attempt, taken.won.attempt);
    assert!(next.won.fence > taken.won.fence);
}

async fn a_taken_over_lapse_is_unknown_again(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let taken = b.win(&b.rerun(1)).await;
    back_to_unknown(b, &taken, UnknownReason::Lapsed).await;
}

async fn a_taken_over_unknown_is_unknown_again(b: &Bench) {
    let first = b.take(1).await;
    let reason = UnknownReason::Panicked;
    assert_eq!(b.mark_unknown(first.holder, reason).await, Written::Done);
    let taken = b.win(&b.recover(1)).await;
    back_to_unknown(b, &taken, reason).await;
}

async fn a_takeover_given_back_does_not_count(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    for _ in 0..3 * MAX_TAKEOVERS {
        let taken = b.win(&b.rerun(1)).await;
        assert_eq!(b.give_back(taken.holder).await, Written::Done);
        b.advance(SECOND);
    }
    let last = b.win(&b.rerun(1)).await;
    assert_eq!(last.won.attempt, 2);
    assert_eq!(
        last.won.doubt_for_us,
        i64::from(3 * MAX_TAKEOVERS) * SECOND,
        "the doubt is as old as it was"
    );
}

async fn an_ended_attempt_is_not_given_back(b: &Bench) {
    let answered = b.answered(1, &text(1, "a")).await;
    assert_eq!(b.give_back(answered.holder).await, Written::AlreadyDone);
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(1, "a")));

    let marked = b.take(2).await;
    let reason = UnknownReason::Failed;
    assert_eq!(b.mark_unknown(marked.holder, reason).await, Written::Done);
    assert_eq!(b.give_back(marked.holder).await, Written::AlreadyDone);
    assert_eq!(b.look(2).await, unknown(reason));
}

async fn a_lapse_that_others_saw_is_given_back(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    assert_eq!(b.give_back(attempt.holder).await, Written::Done);
    let next = b.take(1).await;
    assert_eq!(next.won.attempt, 1, "the body did not run");
    assert!(!next.won.doubt);
}

async fn a_row_given_back_expires(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(b.give_back(attempt.holder).await, Written::Done);
    b.advance(TTL);
    assert_eq!(b.sweep().await, 0);
    b.advance(1);
    assert_eq!(b.sweep().await, 1);
}
