//! Only a holder lets the next caller run, and never over a doubt.

use super::bench::{
    Bench, GRACE, LAPSE, LEASE, MAX_TAKEOVERS, in_progress, other_claim, other_fence, text, unknown,
};
use crate::record::{TombstoneReason, UnknownReason};
use crate::store::{Holder, Reserved, Written};

super::topic!("release":
    the_next_caller_runs,
    sent_twice_it_is_already_done,
    sent_twice_after_the_next_caller_it_is_superseded,
    a_lapsed_holder_may_release,
    another_claim_releases_nothing,
    another_fence_releases_nothing,
    an_absent_record_is_gone,
    an_unknown_outcome_is_not_released,
    a_recorded_answer_is_not_released,
    a_tombstone_is_not_released,
    a_doubt_makes_it_unknown,
    a_doubt_sent_twice_is_already_done,
    a_doubt_that_was_probed_is_released,
    a_release_counts_takeovers_anew,
    a_released_attempt_holds_nothing,
);

async fn the_next_caller_runs(b: &Bench) {
    let first = b.take(1).await;
    assert_eq!(b.release(first.holder).await, Written::Done);
    let second = b.take(1).await;
    assert_eq!(second.won.attempt, 2);
    assert!(!second.won.doubt);
    assert_eq!(second.won.doubt_for_us, 0);
    assert!(second.won.fence > first.won.fence, "a row keeps its fence");
}

async fn sent_twice_it_is_already_done(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    assert_eq!(b.release(attempt.holder).await, Written::AlreadyDone);
    assert_eq!(b.take(1).await.won.attempt, 2);
}

async fn sent_twice_after_the_next_caller_it_is_superseded(b: &Bench) {
    let first = b.take(1).await;
    assert_eq!(b.release(first.holder).await, Written::Done);
    let second = b.take(1).await;
    assert_eq!(
        b.release(first.holder).await,
        Written::Superseded,
        "a late repetition must not release the next attempt"
    );
    assert!(b.renew(second.holder).await);
}

async fn a_lapsed_holder_may_release(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    assert!(!b.take(1).await.won.doubt);
}

async fn another_claim_releases_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    let stranger = other_claim(attempt.holder);
    assert_eq!(b.release(stranger).await, Written::Superseded);
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
}

async fn another_fence_releases_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    for by in [-1, 1] {
        let stranger = other_fence(attempt.holder, by);
        assert_eq!(b.release(stranger).await, Written::Superseded);
    }
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
}

async fn an_absent_record_is_gone(b: &Bench) {
    let holder = b.take(1).await.holder;
    let absent = Holder {
        id: super::bench::id(2),
        ..holder
    };
    assert_eq!(b.release(absent).await, Written::Gone);
    assert_eq!(b.take(2).await.won.attempt, 1);
}

async fn an_unknown_outcome_is_not_released(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = UnknownReason::Panicked;
    assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
    for probed in [false, true] {
        let written = b.release_with(attempt.holder, probed, None).await;
        assert_eq!(written, Written::Superseded);
    }
    assert_eq!(b.look(1).await, unknown(reason));
}

async fn a_recorded_answer_is_not_released(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    assert_eq!(b.release(attempt.holder).await, Written::Superseded);
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(1, "a")));
}

async fn a_tombstone_is_not_released(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(attempt.holder, reason).await, Written::Done);
    assert_eq!(b.release(attempt.holder).await, Written::Superseded);
    assert_eq!(b.look(1).await, Reserved::Tombstone { reason });
}

async fn a_doubt_makes_it_unknown(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let second = b.win(&b.rerun(1)).await;
    assert!(second.won.doubt);
    assert_eq!(b.release(second.holder).await, Written::Done);
    assert_eq!(
        b.look(1).await,
        unknown(UnknownReason::Failed),
        "this attempt did nothing, the one before it may have"
    );
}

async fn a_doubt_sent_twice_is_already_done(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let second = b.win(&b.rerun(1)).await;
    assert_eq!(b.release(second.holder).await, Written::Done);
    assert_eq!(b.release(second.holder).await, Written::AlreadyDone);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Failed));
    assert_eq!(
        b.release_with(second.holder, true, None).await,
        Written::Superseded,
        "an unknown outcome is not released"
    );
    assert_eq!(b.look(1).await, unknown(UnknownReason::Failed));
}

async fn a_doubt_that_was_probed_is_released(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let second = b.win(&b.recover(1)).await;
    let written = b.release_with(second.holder, true, None).await;
    assert_eq!(written, Written::Done);
    let third = b.take(1).await;
    assert_eq!(third.won.attempt, 3);
    assert!(!third.won.doubt, "the probe said that nothing happened");
    assert_eq!(b.release(third.holder).await, Written::Done);
    assert_eq!(b.take(1).await.won.attempt, 4, "nor does it come back");
}

async fn a_release_counts_takeovers_anew(b: &Bench) {
    b.take(1).await;
    for _ in 0..2 {
        let mut last = None;
        for _ in 0..MAX_TAKEOVERS {
            b.advance(LAPSE);
            last = Some(b.win(&b.rerun(1)).await);
        }
        if let Some(last) = last {
            let written = b.release_with(last.holder, true, None).await;
            assert_eq!(written, Written::Done);
        }
        b.take(1).await;
    }
}

async fn a_released_attempt_holds_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    assert!(!b.renew(attempt.holder).await);
    let reason = UnknownReason::Failed;
    let written = b.mark_unknown(attempt.holder, reason).await;
    assert_eq!(written, Written::Superseded);
    b.take(1).await;
}
