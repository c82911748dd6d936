//! Only what lapsed or is unknown, only by who asks for it, only so often.

use super::bench::{
    Bench, GRACE, LAPSE, LEASE, MAX_TAKEOVERS, SECOND, TTL, exhausted, in_progress, text, unknown,
    with,
};
use crate::record::{Recorded, UnknownReason};
use crate::store::{Holder, Reserve, Reserved, Takeover, Won, Written};

super::topic!("takeover":
    a_live_attempt_is_not_taken_over,
    a_late_attempt_is_lapsed_after_lease_and_grace,
    a_grace_is_the_callers_own,
    a_renewed_attempt_is_not_taken_over,
    a_refusing_caller_makes_it_unknown,
    a_refused_lapse_stops_its_renewals,
    a_rerun_takes_over_a_lapsed_attempt,
    a_recovery_takes_over_a_lapsed_attempt,
    a_rerun_takes_over_an_unknown_outcome,
    a_recovery_takes_over_an_unknown_outcome,
    a_taken_over_attempt_has_a_lease_of_its_own,
    a_taken_over_holder_may_write_nothing,
    a_takeover_sent_twice_is_yours,
    a_takeover_of_a_takeover_keeps_the_doubt,
    a_lapsed_attempt_is_taken_over_so_often,
    an_unknown_outcome_is_taken_over_so_often,
    a_key_that_is_fresh_again_counts_anew,
    none_allowed_is_none,
    a_refusing_caller_is_never_exhausted,
    an_answered_takeover_leaves_no_doubt,
    an_earlier_probe_does_not_hold_up_a_later_lapse,
);

async fn a_live_attempt_is_not_taken_over(b: &Bench) {
    let attempt = b.take(1).await;
    for request in [b.rerun(1), b.recover(1), b.request(1)] {
        assert_eq!(b.reserve(&request).await, in_progress(LEASE + GRACE));
    }
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn a_late_attempt_is_lapsed_after_lease_and_grace(b: &Bench) {
    b.take(1).await;
    b.advance(LEASE + 1);
    assert_eq!(b.reserve(&b.rerun(1)).await, in_progress(GRACE - 1));
    b.advance(GRACE - 1);
    for request in [b.rerun(1), b.recover(1), b.request(1)] {
        assert_eq!(
            b.reserve(&request).await,
            in_progress(0),
            "a lease and its grace include their last microsecond"
        );
    }
    b.advance(1);
    b.win(&b.rerun(1)).await;
}

async fn a_grace_is_the_callers_own(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let patient = Reserve {
        grace_us: 2 * GRACE,
        ..b.rerun(1)
    };
    assert_eq!(b.reserve(&patient).await, in_progress(GRACE - 1));
    b.win(&b.rerun(1)).await;
}

async fn a_renewed_attempt_is_not_taken_over(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    assert!(b.renew(attempt.holder).await);
    for request in [b.rerun(1), b.recover(1), b.request(1)] {
        assert_eq!(
            b.reserve(&request).await,
            in_progress(LEASE + GRACE),
            "whether it lapsed must be decided by what stands there now"
        );
    }
}

async fn a_refusing_caller_makes_it_unknown(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
}

async fn a_refused_lapse_stops_its_renewals(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    assert!(!b.renew(attempt.holder).await, "somebody was told: unknown");
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    let reason = UnknownReason::Panicked;
    let written = b.mark_unknown(attempt.holder, reason).await;
    assert_eq!(written, Written::AlreadyDone);
}

async fn lapsed_is_taken(b: &Bench, takeover: Takeover) {
    let first = b.take(1).await;
    b.advance(LAPSE);
    let second = b.win(&with(b.request(1), takeover)).await;
    let expected = Won {
        fence: second.won.fence,
        attempt: 2,
        doubt: true,
        doubt_for_us: 0,
        resent: false,
    };
    assert_eq!(second.won, expected);
    assert!(second.won.fence > first.won.fence);
}

async fn a_rerun_takes_over_a_lapsed_attempt(b: &Bench) {
    lapsed_is_taken(b, Takeover::Rerun).await;
}

async fn a_recovery_takes_over_a_lapsed_attempt(b: &Bench) {
    lapsed_is_taken(b, Takeover::Recover).await;
}

async fn unknown_is_taken(b: &Bench, takeover: Takeover) {
    let first = b.take(1).await;
    let reason = UnknownReason::Panicked;
    assert_eq!(b.mark_unknown(first.holder, reason).await, Written::Done);
    b.advance(7 * SECOND);
    let second = b.win(&with(b.request(1), takeover)).await;
    let expected = Won {
        fence: second.won.fence,
        attempt: 2,
        doubt: true,
        doubt_for_us: 7 * SECOND,
        resent: false,
    };
    assert_eq!(second.won, expected);
    assert!(second.won.fence > first.won.fence);
}

async fn a_rerun_takes_over_an_unknown_outcome(b: &Bench) {
    unknown_is_taken(b, Takeover::Rerun).await;
}

async fn a_recovery_takes_over_an_unknown_outcome(b: &Bench) {
    unknown_is_taken(b, Takeover::Recover).await;
}

async fn a_taken_over_attempt_has_a_lease_of_its_own(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let request = Reserve {
        lease_us: 3 * LEASE,
        ..b.rerun(1)
    };
    b.win(&request).await;
    assert_eq!(b.reserve(&b.rerun(1)).await, in_progress(3 * LEASE + GRACE));
    b.advance(LAPSE);
    assert_eq!(
        b.reserve(&b.rerun(1)).await,
        in_progress(2 * LEASE - 1),
        "the old lease must not lapse the new attempt"
    );
}

async fn a_taken_over_holder_may_write_nothing(b: &Bench) {
    let old = b.take(1).await;
    b.advance(LAPSE);
    let new = b.win(&b.rerun(1)).await;
    let stands = in_progress(LEASE + GRACE);
    b.nothing_moves(1, old.holder, "the old holder", &stands)
        .await;
    assert_eq!(b.give_back(old.holder).await, Written::Superseded);
    let mixed = Holder {
        fence: old.holder.fence,
        ..new.holder
    };
    b.nothing_moves(1, mixed, "the new claim with the old fence", &stands)
        .await;
    let mixed = Holder {
        fence: new.holder.fence,
        ..old.holder
    };
    b.nothing_moves(1, mixed, "the old claim with the new fence", &stands)
        .await;
    assert_eq!(b.answer(new.holder, &text(1, "a")).await, Written::Done);
}

async fn a_takeover_sent_twice_is_yours(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let request = b.rerun(1);
    let attempt = b.win(&request).await;
    b.advance(SECOND);
    let expected = Reserved::Won(Won {
        resent: true,
        doubt_for_us: SECOND,
        ..attempt.won.clone()
    });
    assert_eq!(b.reserve(&request).await, expected);
    assert!(b.renew(attempt.holder).await);
}

async fn a_takeover_of_a_takeover_keeps_the_doubt(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    b.win(&b.rerun(1)).await;
    b.advance(LAPSE);
    let third = b.win(&b.recover(1)).await;
    assert_eq!(third.won.attempt, 3);
    assert!(third.won.doubt);
    assert_eq!(third.won.doubt_for_us, LAPSE, "since the first lapse");
}

async fn a_lapsed_attempt_is_taken_over_so_often(b: &Bench) {
    b.take(1).await;
    for number in 0..MAX_TAKEOVERS {
        b.advance(LAPSE);
        let takeover = [Takeover::Rerun, Takeover::Recover][usize::from(number % 2 == 1)];
        b.win(&with(b.request(1), takeover)).await;
    }
    b.advance(LAPSE);
    for request in [b.rerun(1), b.recover(1)] {
        assert_eq!(
            b.reserve(&request).await,
            exhausted(UnknownReason::Lapsed),
            "a body that crashes its process must not do so for ever"
        );
    }
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    let patient = Reserve {
        max_takeovers: MAX_TAKEOVERS + 1,
        ..b.rerun(1)
    };
    let last = b.win(&patient).await;
    assert_eq!(last.won.attempt, MAX_TAKEOVERS + 2);
}

async fn an_unknown_outcome_is_taken_over_so_often(b: &Bench) {
    let mut attempt = b.take(1).await;
    let reason = UnknownReason::Failed;
    for _ in 0..MAX_TAKEOVERS {
        assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
        attempt = b.win(&b.rerun(1)).await;
    }
    assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
    assert_eq!(b.reserve(&b.rerun(1)).await, exhausted(reason));
    assert_eq!(b.reserve(&b.recover(1)).await, exhausted(reason));
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

/// Takes a key over as often as allowed, and records an answer.
async fn use_up(b: &Bench, request: impl Fn() -> Reserve) {
    let mut last = b.win(&request()).await;
    for _ in 0..MAX_TAKEOVERS {
        b.advance(LAPSE);
        last = b.win(&with(request(), Takeover::Rerun)).await;
    }
    let answer = Recorded::new(&last.holder.id, "json", false, Vec::new());
    assert_eq!(b.answer(last.holder, &answer).await, Written::Done);
}

async fn a_key_that_is_fresh_again_counts_anew(b: &Bench) {
    use_up(b, || b.request(1)).await;
    b.advance(TTL + 1);
    use_up(b, || b.request(1)).await;
    use_up(b, || b.versioned(2, 1)).await;
    use_up(b, || b.versioned(2, 2)).await;
}

async fn none_allowed_is_none(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let request = Reserve {
        max_takeovers: 0,
        ..b.rerun(1)
    };
    assert_eq!(b.reserve(&request).await, exhausted(UnknownReason::Lapsed));
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
}

async fn a_refusing_caller_is_never_exhausted(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let request = Reserve {
        max_takeovers: 0,
        ..b.request(1)
    };
    assert_eq!(b.reserve(&request).await, unknown(UnknownReason::Lapsed));
    assert_eq!(b.reserve(&request).await, unknown(UnknownReason::Lapsed));
}

async fn an_answered_takeover_leaves_no_doubt(b: &Bench) {
    b.take(1).await;
    b.advance(LAPSE);
    let second = b.win(&b.rerun(1)).await;
    assert_eq!(b.answer(second.holder, &text(1, "a")).await, Written::Done);
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { attempt: 2, .. }));
    b.advance(2 * TTL);
    let fresh = b.take(1).await;
    assert!(!fresh.won.doubt);
    assert_eq!(b.release(fresh.holder).await, Written::Done);
    assert_eq!(
        b.take(1).await.won.attempt,
        2,
        "it was released, not unknown"
    );
}

async fn an_earlier_probe_does_not_hold_up_a_later_lapse(b: &Bench) {
    let first = b.take(1).await;
    assert_eq!(b.undecided(first.holder, 60 * LEASE).await, Written::Done);
    b.win(&b.rerun(1)).await;
    b.advance(LAPSE);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    b.win(&b.recover(1)).await;
}
