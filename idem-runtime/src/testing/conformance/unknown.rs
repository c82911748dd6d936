//! An outcome in doubt stays so until it is settled.

use super::bench::{
    Bench, GRACE, LAPSE, LEASE, MAX_TAKEOVERS, SECOND, done, id, in_progress, other_claim,
    other_fence, text, tombstone, unknown,
};
use crate::record::{TombstoneReason, UnknownReason};
use crate::store::{Holder, MarkUnknown, Reserved, Written};

super::topic!("unknown":
    the_holder_says_that_it_does_not_know,
    sent_twice_the_first_reason_stands,
    a_lapsed_holder_may_say_so,
    another_claim_marks_nothing,
    another_fence_marks_nothing,
    a_superseded_holder_marks_nothing,
    an_absent_record_is_gone,
    a_recorded_answer_is_not_marked,
    a_tombstone_is_not_marked,
    a_released_attempt_is_not_marked,
    the_renewer_marks_as_the_store_does,
    an_undecided_probe_waits_for_the_next,
    an_undecided_probe_sent_twice_is_done_once,
    an_undecided_probe_is_no_takeover,
    a_rerun_waits_for_no_probe,
);

async fn the_holder_says_that_it_does_not_know(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = UnknownReason::Failed;
    assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
    assert_eq!(b.look(1).await, unknown(reason));
    assert!(!b.renew(attempt.holder).await, "it no longer runs");
    assert_eq!(b.look(1).await, unknown(reason));
}

async fn sent_twice_the_first_reason_stands(b: &Bench) {
    let attempt = b.take(1).await;
    let first = UnknownReason::Panicked;
    assert_eq!(b.mark_unknown(attempt.holder, first).await, Written::Done);
    for reason in [first, UnknownReason::ShutDown] {
        let written = b.mark_unknown(attempt.holder, reason).await;
        assert_eq!(written, Written::AlreadyDone);
    }
    assert_eq!(b.look(1).await, unknown(first));
}

async fn a_lapsed_holder_may_say_so(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    let reason = UnknownReason::Nested;
    assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
    assert_eq!(b.look(1).await, unknown(reason));
}

async fn another_claim_marks_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    let stranger = other_claim(attempt.holder);
    let written = b.mark_unknown(stranger, UnknownReason::Panicked).await;
    assert_eq!(written, Written::Superseded);
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
}

async fn another_fence_marks_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    for by in [-1, 1] {
        let stranger = other_fence(attempt.holder, by);
        let written = b.mark_unknown(stranger, UnknownReason::Panicked).await;
        assert_eq!(written, Written::Superseded);
    }
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
}

async fn a_superseded_holder_marks_nothing(b: &Bench) {
    let old = b.take(1).await;
    b.advance(LAPSE);
    let new = b.win(&b.rerun(1)).await;
    let written = b.mark_unknown(old.holder, UnknownReason::Panicked).await;
    assert_eq!(written, Written::Superseded);
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
    assert_eq!(b.answer(new.holder, &text(1, "a")).await, Written::Done);
}

async fn an_absent_record_is_gone(b: &Bench) {
    let holder = b.take(1).await.holder;
    let absent = Holder {
        id: id(2),
        ..holder
    };
    let written = b.mark_unknown(absent, UnknownReason::Panicked).await;
    assert_eq!(written, Written::Gone);
    assert_eq!(b.take(2).await.won.attempt, 1);
}

async fn a_recorded_answer_is_not_marked(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    let reason = UnknownReason::ShutDown;
    let written = b.mark_unknown(attempt.holder, reason).await;
    assert_eq!(written, Written::Superseded);
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(1, "a")));
}

async fn a_tombstone_is_not_marked(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(attempt.holder, reason).await, Written::Done);
    let written = b.mark_unknown(attempt.holder, UnknownReason::Failed).await;
    assert_eq!(written, Written::Superseded);
    assert_eq!(b.look(1).await, tombstone(reason));
}

async fn a_released_attempt_is_not_marked(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    let written = b.mark_unknown(attempt.holder, UnknownReason::Failed).await;
    assert_eq!(written, Written::Superseded);
    assert_eq!(b.take(1).await.won.attempt, 2);
}

async fn the_renewer_marks_as_the_store_does(b: &Bench) {
    let attempt = b.take(1).await;
    let mut renewer = b.renewer().await;
    let request = |holder, reason| MarkUnknown {
        holder,
        reason,
        undecided_retry_us: None,
    };
    let reason = UnknownReason::Cancelled;
    for stranger in [
        other_claim(attempt.holder),
        other_fence(attempt.holder, -1),
        other_fence(attempt.holder, 1),
    ] {
        let written = done(renewer.mark_unknown(&request(stranger, reason)).await);
        assert_eq!(written, Written::Superseded);
    }
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
    let mark = request(attempt.holder, reason);
    assert_eq!(done(renewer.mark_unknown(&mark).await), Written::Done);
    assert_eq!(
        done(renewer.mark_unknown(&mark).await),
        Written::AlreadyDone
    );
    let written = b.mark_unknown(attempt.holder, reason).await;
    assert_eq!(written, Written::AlreadyDone, "through the other path too");
    assert_eq!(b.look(1).await, unknown(reason));
}

fn undecided(retry_us: i64) -> Reserved {
    Reserved::Unknown {
        reason: UnknownReason::Undecided,
        exhausted: false,
        retry_us: Some(retry_us),
    }
}

async fn an_undecided_probe_waits_for_the_next(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let probe = b.win(&b.recover(1)).await;
    let written = b.undecided(probe.holder, 10 * SECOND).await;
    assert_eq!(written, Written::Done);
    assert_eq!(b.reserve(&b.recover(1)).await, undecided(10 * SECOND));
    b.advance(10 * SECOND - 1);
    assert_eq!(b.reserve(&b.recover(1)).await, undecided(1));
    assert_eq!(b.look(1).await, unknown(UnknownReason::Undecided));
    b.advance(1);
    let next = b.win(&b.recover(1)).await;
    assert_eq!(next.won.attempt, 3);
    assert!(next.won.doubt);
    assert_eq!(
        next.won.doubt_for_us,
        10 * SECOND,
        "the doubt is as old as the first lapse that was seen"
    );
}

async fn an_undecided_probe_sent_twice_is_done_once(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let probe = b.win(&b.recover(1)).await;
    assert_eq!(b.undecided(probe.holder, SECOND).await, Written::Done);
    b.advance(SECOND / 2);
    let written = b.undecided(probe.holder, SECOND).await;
    assert_eq!(written, Written::AlreadyDone);
    assert_eq!(
        b.reserve(&b.recover(1)).await,
        undecided(SECOND / 2),
        "a repetition must not put the next probe off"
    );
}

async fn an_undecided_probe_is_no_takeover(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    for _ in 0..3 * MAX_TAKEOVERS {
        let probe = b.win(&b.recover(1)).await;
        assert_eq!(b.undecided(probe.holder, SECOND).await, Written::Done);
        b.advance(SECOND);
    }
    b.win(&b.rerun(1)).await;
}

async fn a_rerun_waits_for_no_probe(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let probe = b.win(&b.recover(1)).await;
    assert_eq!(b.undecided(probe.holder, SECOND).await, Written::Done);
    b.win(&b.rerun(1)).await;
}
