//! TTLs, without any sweep, and what never expires.

use super::bench::{
    Attempt, Bench, GRACE, LAPSE, LEASE, SECOND, TTL, YEARS, in_progress, other_payload, text,
    tombstone, unknown,
};
use crate::record::{TombstoneReason, UnknownReason};
use crate::store::{Complete, Ending, Reserved, Won, Written};

super::topic!("expiry":
    an_answer_counts_as_absent_after_its_ttl,
    a_tombstone_counts_as_absent_after_its_ttl,
    a_released_key_counts_as_absent_after_its_ttl,
    a_ttl_counts_from_the_answer,
    an_expired_key_runs_with_any_payload,
    an_expired_attempt_still_holds_its_answer,
    for_ever_is_for_ever,
    a_ttl_beyond_the_clock_is_for_ever,
    a_fence_grows_over_every_expiry,
    a_running_attempt_never_expires,
    an_unknown_outcome_never_expires,
    a_taken_over_attempt_never_expires,
);

/// What a key is won as when nothing is remembered but its fence.
fn fresh(attempt: &Attempt, before: i64) {
    let expected = Won {
        fence: attempt.won.fence,
        attempt: 1,
        doubt: false,
        doubt_for_us: 0,
        resent: false,
    };
    assert_eq!(attempt.won, expected);
    assert!(attempt.won.fence > before, "a fence only grows");
}

super::topic!(
    STEADY,
    "expiry",
    &[crate::store::Capability::SteadyClock],
    a_clock_that_steps_back_revives_no_lease,
    a_clock_that_steps_back_shortens_no_lease,
    a_clock_that_steps_back_revives_no_answer
);

async fn an_answer_counts_as_absent_after_its_ttl(b: &Bench) {
    let old = b.answered(1, &text(1, "a")).await;
    b.advance(TTL);
    let reply = b.look(1).await;
    assert!(
        matches!(&reply, Reserved::Completed { answer, .. } if *answer == text(1, "a")),
        "a TTL includes its last microsecond, got {reply:?}"
    );
    b.advance(1);
    let next = b.take(1).await;
    fresh(&next, old.won.fence);
    assert_eq!(b.answer(next.holder, &text(1, "b")).await, Written::Done);
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(1, "b")));
}

async fn a_tombstone_counts_as_absent_after_its_ttl(b: &Bench) {
    let old = b.take(1).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(old.holder, reason).await, Written::Done);
    b.advance(TTL);
    assert_eq!(b.look(1).await, tombstone(reason));
    b.advance(1);
    fresh(&b.take(1).await, old.won.fence);
}

async fn a_released_key_counts_as_absent_after_its_ttl(b: &Bench) {
    let old = b.take(1).await;
    assert_eq!(b.release(old.holder).await, Written::Done);
    b.advance(TTL + 1);
    fresh(&b.take(1).await, old.won.fence);
}

async fn a_ttl_counts_from_the_answer(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(2 * TTL);
    assert!(b.renew(attempt.holder).await);
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
    b.advance(TTL);
    assert!(matches!(b.look(1).await, Reserved::Completed { .. }));
}

async fn an_expired_key_runs_with_any_payload(b: &Bench) {
    let old = b.answered(1, &text(1, "a")).await;
    b.advance(TTL + 1);
    fresh(&b.win(&other_payload(b.request(1))).await, old.won.fence);
}

async fn an_expired_attempt_still_holds_its_answer(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    b.advance(TTL + 1);
    // Swept or not is the store's business; not taken for a loss is the point.
    let written = b.answer(attempt.holder, &text(1, "b")).await;
    assert_eq!(written, Written::AlreadyDone);
    let next = b.take(1).await;
    let written = b.answer(attempt.holder, &text(1, "b")).await;
    assert_eq!(written, Written::Superseded);
    assert!(b.renew(next.holder).await);
}

async fn kept(b: &Bench, key: u8, ttl_us: Option<i64>) {
    let attempt = b.take(key).await;
    let request = Complete {
        holder: attempt.holder,
        ending: Ending::Answer(text(key, "a")),
        ttl_us,
    };
    assert_eq!(b.complete(&request).await, Written::Done);
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0);
    let reply = b.look(key).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(key, "a")));
}

async fn for_ever_is_for_ever(b: &Bench) {
    kept(b, 1, None).await;
    let attempt = b.take(2).await;
    let written = b.release_with(attempt.holder, false, None).await;
    assert_eq!(written, Written::Done);
    b.advance(YEARS);
    assert_eq!(b.take(2).await.won.attempt, 2, "released, and remembered");
}

async fn a_ttl_beyond_the_clock_is_for_ever(b: &Bench) {
    kept(b, 1, Some(i64::MAX)).await;
    kept(b, 2, Some(i64::MAX - 1)).await;
}

async fn a_fence_grows_over_every_expiry(b: &Bench) {
    let mut last = 0;
    for _ in 0..5 {
        let attempt = b.answered(1, &text(1, "a")).await;
        assert!(attempt.won.fence > last);
        last = attempt.won.fence;
        b.advance(TTL + 1);
    }
    let attempt = b.take(1).await;
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    // Even if the clock is far behind what was seen of it.
    b.step_back(10 * TTL);
    let next = b.take(1).await;
    assert!(attempt.won.fence > last && next.won.fence > attempt.won.fence);
}

async fn a_running_attempt_never_expires(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0);
    assert_eq!(
        b.look(1).await,
        unknown(UnknownReason::Lapsed),
        "to forget that it ran is to run it again"
    );
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn an_unknown_outcome_never_expires(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = UnknownReason::Failed;
    assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0);
    assert_eq!(b.look(1).await, unknown(reason));
}

async fn a_taken_over_attempt_never_expires(b: &Bench) {
    // Every state before it had an expiry, which must not outlive it.
    let first = b.answered(1, &text(1, "a")).await;
    b.advance(TTL + 1);
    let second = b.take(1).await;
    assert!(second.won.fence > first.won.fence);
    assert_eq!(b.release(second.holder).await, Written::Done);
    let third = b.take(1).await;
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    let fourth = b.win(&b.rerun(1)).await;
    assert_eq!(fourth.won.attempt, third.won.attempt + 1);
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
}

async fn a_clock_that_steps_back_revives_no_lease(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    b.take(2).await;
    b.step_back(LAPSE);
    let next = b.win(&b.rerun(1)).await;
    assert!(next.won.fence > attempt.won.fence);
    assert_eq!(next.won.doubt_for_us, 0);
}

async fn a_clock_that_steps_back_shortens_no_lease(b: &Bench) {
    b.take(1).await;
    b.step_back(TTL);
    let attempt = b.take(2).await;
    assert_eq!(b.look(2).await, in_progress(LEASE + GRACE));
    assert!(b.renew(attempt.holder).await);
    b.advance(TTL);
    assert_eq!(
        b.look(2).await,
        in_progress(LEASE + GRACE),
        "a lease must not start in the past"
    );
}

async fn a_clock_that_steps_back_revives_no_answer(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    b.advance(TTL + SECOND);
    b.take(2).await;
    b.step_back(TTL);
    b.take(1).await;
}
