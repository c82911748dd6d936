//! What is deleted, and what never is.

use super::bench::{
    Bench, GRACE, LAPSE, LEASE, SECOND, TTL, YEARS, in_progress, text, tombstone, unknown,
};
use crate::record::{TombstoneReason, UnknownReason};
use crate::store::{Reserved, Written};

super::topic!("sweep" needs Sweep:
    an_empty_store_has_nothing_to_delete,
    what_is_finished_or_released_and_expired_is_deleted,
    a_grace_is_kept,
    a_running_or_unknown_record_is_never_deleted,
    what_is_kept_for_ever_is_never_deleted,
    a_batch_has_a_limit,
    a_key_that_was_taken_again_is_not_deleted,
    an_answer_recorded_again_has_its_own_ttl,
    a_swept_attempt_is_gone,
    a_swept_key_is_fresh,
    a_sweep_sent_twice_deletes_once,
);

async fn an_empty_store_has_nothing_to_delete(b: &Bench) {
    assert_eq!(b.sweep().await, 0);
    assert_eq!(b.sweep_with(0, 0).await, 0);
}

async fn what_is_finished_or_released_and_expired_is_deleted(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    let buried = b.take(2).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(buried.holder, reason).await, Written::Done);
    let released = b.take(3).await;
    assert_eq!(b.release(released.holder).await, Written::Done);
    b.advance(TTL);
    assert_eq!(b.sweep().await, 0, "their last microsecond");
    assert!(matches!(b.look(1).await, Reserved::Completed { .. }));
    assert_eq!(b.look(2).await, tombstone(reason));
    b.advance(1);
    assert_eq!(b.sweep().await, 3);
    assert_eq!(b.sweep().await, 0);
}

async fn a_grace_is_kept(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    b.advance(TTL + SECOND);
    assert_eq!(b.sweep_with(10, SECOND).await, 0);
    assert_eq!(b.sweep_with(10, YEARS).await, 0);
    b.advance(1);
    assert_eq!(b.sweep_with(10, SECOND).await, 1);
}

async fn a_running_or_unknown_record_is_never_deleted(b: &Bench) {
    b.take(1).await;
    let marked = b.take(2).await;
    let reason = UnknownReason::ShutDown;
    assert_eq!(b.mark_unknown(marked.holder, reason).await, Written::Done);
    b.take(3).await;
    b.advance(LAPSE);
    assert_eq!(b.look(3).await, unknown(UnknownReason::Lapsed));
    b.win(&b.rerun(3)).await;
    for _ in 0..3 {
        b.advance(YEARS);
        assert_eq!(b.sweep().await, 0, "that is forgetting, and a second run");
    }
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    assert_eq!(b.look(2).await, unknown(reason));
    assert_eq!(b.look(3).await, unknown(UnknownReason::Lapsed));
}

async fn what_is_kept_for_ever_is_never_deleted(b: &Bench) {
    let attempt = b.take(1).await;
    let written = b.release_with(attempt.holder, false, None).await;
    assert_eq!(written, Written::Done);
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0);
    assert_eq!(b.take(1).await.won.attempt, 2);
}

async fn a_batch_has_a_limit(b: &Bench) {
    for key in 0..7 {
        b.answered(key, &text(key, "a")).await;
    }
    b.take(100).await;
    b.advance(TTL + 1);
    assert_eq!(b.sweep_with(0, 0).await, 0);
    for expected in [3, 3, 1, 0] {
        assert_eq!(b.sweep_with(3, 0).await, expected);
    }
    for key in 0..7 {
        assert_eq!(b.take(key).await.won.attempt, 1);
    }
}

async fn a_key_that_was_taken_again_is_not_deleted(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    b.advance(TTL + 1);
    let second = b.take(1).await;
    assert_eq!(b.sweep().await, 0, "its expiry was the old answer's");
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
    assert_eq!(b.answer(second.holder, &text(1, "b")).await, Written::Done);
}

async fn an_answer_recorded_again_has_its_own_ttl(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    b.advance(TTL + 1);
    b.answered(1, &text(1, "b")).await;
    assert_eq!(b.sweep().await, 0);
    b.advance(TTL);
    assert_eq!(b.sweep().await, 0);
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(1, "b")));
    b.advance(1);
    assert_eq!(b.sweep().await, 1);
}

async fn a_swept_attempt_is_gone(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    b.advance(TTL + 1);
    assert_eq!(b.sweep().await, 1);
    let holder = attempt.holder;
    assert_eq!(b.answer(holder, &text(1, "a")).await, Written::Gone);
    assert_eq!(b.release(holder).await, Written::Gone);
    let reason = UnknownReason::Failed;
    assert_eq!(b.mark_unknown(holder, reason).await, Written::Gone);
    assert_eq!(b.give_back(holder).await, Written::Gone);
    assert!(!b.renew(holder).await);
    assert_eq!(b.take(1).await.won.attempt, 1, "none of these made a row");
}

async fn a_swept_key_is_fresh(b: &Bench) {
    let old = b.answered(1, &text(1, "a")).await;
    b.advance(TTL + 1);
    assert_eq!(b.sweep().await, 1);
    let new = b.take(1).await;
    assert_eq!(new.won.attempt, 1);
    assert!(new.won.fence > old.won.fence, "by the store's time");
}

async fn a_sweep_sent_twice_deletes_once(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    b.answered(2, &text(2, "a")).await;
    b.advance(TTL + 1);
    b.answered(3, &text(3, "a")).await;
    assert_eq!(b.sweep_with(2, 0).await, 2);
    assert_eq!(b.sweep_with(2, 0).await, 0);
    assert!(matches!(b.look(3).await, Reserved::Completed { .. }));
}
