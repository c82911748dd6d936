//! What operators change by hand, and what they may not.

use super::bench::{
    Attempt, Bench, GRACE, LAPSE, LEASE, MAX_TAKEOVERS, TTL, exhausted, id, in_progress,
    other_payload, text, tombstone, unknown,
};
use crate::record::{Note, Recorded, Standing, State, TombstoneReason, UnknownReason};
use crate::store::{Reserved, Settle, Written};
use crate::transition::Settlement;

super::topic!("admin" needs Admin:
    a_doubt_settled_as_done_replays_that_answer,
    a_settled_answer_has_its_ttl,
    a_settled_error_is_replayed_as_one,
    a_doubt_settled_as_not_done_lets_the_next_caller_run,
    a_doubt_settled_as_not_done_forgets_its_takeovers,
    a_lapsed_attempt_is_settled_and_its_holder_is_late,
    a_tombstone_is_settled,
    whatever_is_forgotten_runs_as_fresh,
    a_forgotten_record_tells_nothing,
    a_forgotten_version_is_no_longer_newer,
    a_live_attempt_is_settled_only_by_force,
    an_attempt_that_was_settled_by_force_may_write_nothing,
    another_fence_settles_nothing,
    what_healed_since_it_was_seen_is_left_alone,
    what_was_taken_over_since_it_was_seen_is_left_alone,
    what_was_renewed_since_it_was_seen_is_left_alone,
    a_recorded_answer_is_forgotten_or_left_alone,
    a_released_record_is_forgotten_or_left_alone,
    an_absent_record_cannot_be_settled,
    settling_sent_twice_is_superseded,
);

/// Settles as of a fence, kept for [`TTL`].
pub(super) fn by_hand(key: u8, fence: i64, settlement: Settlement) -> Settle {
    Settle {
        state: None,
        id: id(key),
        fence,
        settlement,
        force: false,
        ttl_us: Some(TTL),
        grace_us: GRACE,
        note: note("ops", "looked at the gateway"),
    }
}

pub(super) fn forced(request: Settle) -> Settle {
    Settle {
        force: true,
        ..request
    }
}

#[expect(clippy::panic, reason = "a case fails by panicking")]
pub(super) fn note(by: &str, why: &str) -> Note {
    match Note::new(by, why) {
        Some(note) => note,
        None => panic!("a note is not blank"),
    }
}

fn done_with(key: u8) -> Settlement {
    Settlement::Done(text(key, "by hand"))
}

/// Every settlement of a key.
fn all(key: u8) -> [Settlement; 3] {
    [done_with(key), Settlement::NotDone, Settlement::Forgotten]
}

async fn a_doubt_settled_as_done_replays_that_answer(b: &Bench) {
    let attempt = b.doubtful(1).await;
    b.advance(LAPSE);
    let request = by_hand(1, attempt.won.fence, done_with(1));
    assert_eq!(b.settle(&request).await, Written::Done);
    let now_us = b.see(1).await.now_us;
    let expected = Reserved::Completed {
        answer: text(1, "by hand"),
        finished_us: now_us,
        attempt: 1,
        left_us: Some(TTL),
    };
    for reply in [b.look(1).await, b.reserve(&b.rerun(1)).await] {
        assert_eq!(reply, expected);
    }
    assert_eq!(b.standing(Standing::Unknown).await, []);
    let stands = b.look(1).await;
    b.nothing_moves(1, attempt.holder, "who left it", &stands)
        .await;
}

async fn a_settled_answer_has_its_ttl(b: &Bench) {
    let attempt = b.doubtful(1).await;
    let request = by_hand(1, attempt.won.fence, done_with(1));
    assert_eq!(b.settle(&request).await, Written::Done);
    b.advance(TTL);
    assert!(matches!(b.look(1).await, Reserved::Completed { .. }));
    b.advance(1);
    assert_eq!(b.take(1).await.won.attempt, 1);
    let attempt = b.doubtful(2).await;
    let for_ever = Settle {
        ttl_us: None,
        ..by_hand(2, attempt.won.fence, done_with(2))
    };
    assert_eq!(b.settle(&for_ever).await, Written::Done);
    b.advance(super::bench::YEARS);
    let reply = b.look(2).await;
    assert!(matches!(reply, Reserved::Completed { left_us: None, .. }));
}

async fn a_settled_error_is_replayed_as_one(b: &Bench) {
    let attempt = b.doubtful(1).await;
    let refused = Recorded::new(&id(1), "json", true, b"\"card refused\"".to_vec());
    let request = by_hand(1, attempt.won.fence, Settlement::Done(refused.clone()));
    assert_eq!(b.settle(&request).await, Written::Done);
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == refused));
}

async fn a_doubt_settled_as_not_done_lets_the_next_caller_run(b: &Bench) {
    let attempt = b.doubtful(1).await;
    b.advance(LAPSE);
    let request = by_hand(1, attempt.won.fence, Settlement::NotDone);
    assert_eq!(b.settle(&request).await, Written::Done);
    let next = b.take(1).await;
    assert_eq!(next.won.attempt, 2);
    assert_eq!((next.won.doubt, next.won.doubt_for_us), (false, 0));
    assert!(next.won.fence > attempt.won.fence);
    let stands = in_progress(LEASE + GRACE);
    b.nothing_moves(1, attempt.holder, "who left it", &stands)
        .await;
    assert_eq!(b.answer(next.holder, &text(1, "a")).await, Written::Done);
}

async fn a_doubt_settled_as_not_done_forgets_its_takeovers(b: &Bench) {
    b.take(1).await;
    for _ in 0..MAX_TAKEOVERS {
        b.advance(LAPSE);
        b.win(&b.rerun(1)).await;
    }
    b.advance(LAPSE);
    let reply = b.reserve(&b.rerun(1)).await;
    assert_eq!(reply, exhausted(UnknownReason::Lapsed));
    let fence = b.see(1).await.record.fence;
    let request = by_hand(1, fence, Settlement::NotDone);
    assert_eq!(b.settle(&request).await, Written::Done);
    b.take(1).await;
    b.advance(LAPSE);
    b.win(&b.rerun(1)).await;
}

async fn a_lapsed_attempt_is_settled_and_its_holder_is_late(b: &Bench) {
    for (key, settlement) in (1..).zip(all(1)) {
        let late = b.take(key).await;
        b.advance(LAPSE);
        let request = by_hand(key, late.won.fence, settlement);
        assert_eq!(b.settle(&request).await, Written::Done);
        let written = b.answer(late.holder, &text(key, "late")).await;
        assert_eq!(written, Written::Superseded);
        assert!(!b.renew(late.holder).await);
    }
    assert!(matches!(b.look(1).await, Reserved::Completed { .. }));
    assert_eq!(b.take(2).await.won.attempt, 2);
    assert_eq!(b.take(3).await.won.attempt, 1);
}

async fn buried(b: &Bench, key: u8) -> Attempt {
    let attempt = b.take(key).await;
    let written = b.bury(attempt.holder, TombstoneReason::TooLarge).await;
    assert_eq!(written, Written::Done);
    attempt
}

async fn a_tombstone_is_settled(b: &Bench) {
    for (key, settlement) in (1..).zip([done_with(1), Settlement::NotDone]) {
        let attempt = buried(b, key).await;
        assert_eq!(b.look(key).await, tombstone(TombstoneReason::TooLarge));
        let request = by_hand(key, attempt.won.fence, settlement);
        assert_eq!(b.settle(&request).await, Written::Done);
    }
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(1, "by hand")));
    assert_eq!(b.take(2).await.won.attempt, 2);
}

async fn whatever_is_forgotten_runs_as_fresh(b: &Bench) {
    let lapsed = b.take(1).await;
    b.advance(LAPSE);
    let released = b.take(2).await;
    assert_eq!(b.release(released.holder).await, Written::Done);
    let seen = [
        lapsed,
        released,
        b.doubtful(3).await,
        b.answered(4, &text(4, "a")).await,
        buried(b, 5).await,
    ];
    for (key, attempt) in (1..).zip(seen) {
        let fence = attempt.won.fence;
        let request = by_hand(key, fence, Settlement::Forgotten);
        assert_eq!(b.settle(&request).await, Written::Done, "key {key}");
        let fresh = b.win(&other_payload(b.request(key))).await;
        assert_eq!(
            (fresh.won.attempt, fresh.won.doubt),
            (1, false),
            "key {key}"
        );
        assert!(fresh.won.fence > fence, "key {key}");
        let stands = b.look(key).await;
        b.nothing_moves(key, attempt.holder, "who is forgotten", &stands)
            .await;
    }
}

async fn a_forgotten_record_tells_nothing(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    let request = by_hand(1, attempt.won.fence, Settlement::Forgotten);
    assert_eq!(b.settle(&request).await, Written::Done);
    // A store may have dropped it at once.
    if let Ok(Some(seen)) = b.admin().get(&id(1)).await {
        let record = seen.record;
        assert!(record.is_expired(seen.now_us));
        assert_eq!((record.state, record.answer), (State::Released, None));
        assert_eq!((record.label, record.elements), (None, Vec::new()));
    }
}

async fn a_forgotten_version_is_no_longer_newer(b: &Bench) {
    let newest = b.win(&b.versioned(1, 9)).await;
    assert_eq!(b.answer(newest.holder, &text(1, "9")).await, Written::Done);
    assert!(matches!(
        b.reserve(&b.versioned(1, 1)).await,
        Reserved::Stale { .. }
    ));
    let request = by_hand(1, newest.won.fence, Settlement::Forgotten);
    assert_eq!(b.settle(&request).await, Written::Done);
    b.win(&b.versioned(1, 1)).await;
}

/// The fence stays, so the state must be looked at: a forgotten answer would run again.
async fn what_healed_since_it_was_seen_is_left_alone(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(
        b.mark_unknown(attempt.holder, UnknownReason::Panicked)
            .await,
        Written::Done
    );
    let seen = b.see(1).await.record;
    assert_eq!(seen.state, State::Unknown);
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
    let request = Settle {
        state: Some(seen.state),
        ..by_hand(1, seen.fence, Settlement::Forgotten)
    };
    assert_eq!(b.settle(&request).await, Written::Superseded);
    let healed = b.see(1).await.record;
    assert_eq!(healed.state, State::Completed);
    let request = Settle {
        state: Some(healed.state),
        ..request
    };
    assert_eq!(b.settle(&request).await, Written::Done);
}

async fn a_live_attempt_is_settled_only_by_force(b: &Bench) {
    for (key, settlement) in (1..).zip(all(1)) {
        let attempt = b.take(key).await;
        let request = by_hand(key, attempt.won.fence, settlement);
        for left in [LEASE + GRACE, 0] {
            b.advance(LEASE + GRACE - left);
            assert_eq!(b.settle(&request).await, Written::Superseded);
            assert_eq!(b.look(key).await, in_progress(left));
        }
        assert_eq!(b.settle(&forced(request)).await, Written::Done);
        assert_eq!(b.standing(Standing::InProgress).await, []);
    }
}

async fn an_attempt_that_was_settled_by_force_may_write_nothing(b: &Bench) {
    for (key, settlement) in (1..).zip(all(1)) {
        let live = b.take(key).await;
        let request = forced(by_hand(key, live.won.fence, settlement));
        assert_eq!(b.settle(&request).await, Written::Done);
        // The answer, or whoever came next.
        let reply = b.look(key).await;
        let stands = match reply {
            Reserved::Won(_) => in_progress(LEASE + GRACE),
            other => other,
        };
        b.nothing_moves(key, live.holder, "who was overruled", &stands)
            .await;
    }
}

async fn another_fence_settles_nothing(b: &Bench) {
    let attempt = b.doubtful(1).await;
    for by in [-1, 1] {
        for settlement in all(1) {
            let request = by_hand(1, attempt.won.fence + by, settlement);
            for request in [request.clone(), forced(request)] {
                assert_eq!(b.settle(&request).await, Written::Superseded);
            }
        }
    }
    assert_eq!(b.look(1).await, unknown(UnknownReason::Panicked));
}

async fn what_was_taken_over_since_it_was_seen_is_left_alone(b: &Bench) {
    let seen = b.doubtful(1).await;
    let taker = b.win(&b.rerun(1)).await;
    for settlement in all(1) {
        let request = forced(by_hand(1, seen.won.fence, settlement));
        assert_eq!(b.settle(&request).await, Written::Superseded);
    }
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
    assert_eq!(b.answer(taker.holder, &text(1, "a")).await, Written::Done);
}

async fn what_was_renewed_since_it_was_seen_is_left_alone(b: &Bench) {
    let late = b.take(1).await;
    b.advance(LAPSE);
    assert!(b.renew(late.holder).await);
    for settlement in all(1) {
        let request = by_hand(1, late.won.fence, settlement);
        assert_eq!(b.settle(&request).await, Written::Superseded);
    }
    assert_eq!(b.answer(late.holder, &text(1, "a")).await, Written::Done);
}

async fn a_recorded_answer_is_forgotten_or_left_alone(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    for settlement in [done_with(1), Settlement::NotDone] {
        let request = by_hand(1, attempt.won.fence, settlement);
        for request in [request.clone(), forced(request)] {
            assert_eq!(b.settle(&request).await, Written::Superseded);
        }
    }
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(1, "a")));
    let request = by_hand(1, attempt.won.fence, Settlement::Forgotten);
    assert_eq!(b.settle(&request).await, Written::Done);
    assert_eq!(b.take(1).await.won.attempt, 1);
}

async fn a_released_record_is_forgotten_or_left_alone(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    for settlement in [done_with(1), Settlement::NotDone] {
        let request = forced(by_hand(1, attempt.won.fence, settlement));
        assert_eq!(b.settle(&request).await, Written::Superseded);
    }
    let request = by_hand(1, attempt.won.fence, Settlement::Forgotten);
    assert_eq!(b.settle(&request).await, Written::Done);
    assert_eq!(b.take(1).await.won.attempt, 1, "its attempts are forgotten");
}

async fn an_absent_record_cannot_be_settled(b: &Bench) {
    let fence = b.take(1).await.won.fence;
    for settlement in all(2) {
        let request = forced(by_hand(2, fence, settlement));
        assert_eq!(b.settle(&request).await, Written::Gone);
    }
    assert!(matches!(b.admin().get(&id(2)).await, Ok(None)));
}

async fn settling_sent_twice_is_superseded(b: &Bench) {
    for (key, settlement) in (1..).zip(all(1)) {
        let attempt = b.doubtful(key).await;
        let request = by_hand(key, attempt.won.fence, settlement);
        assert_eq!(b.settle(&request).await, Written::Done);
        for request in [request.clone(), forced(request)] {
            assert_ne!(b.settle(&request).await, Written::Done, "key {key}");
        }
    }
}
