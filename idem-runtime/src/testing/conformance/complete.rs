//! An answer is recorded once, by its attempt, and never changes.

use super::bench::{
    Attempt, Bench, GRACE, LAPSE, LEASE, SECOND, TTL, YEARS, in_progress, other_claim, other_fence,
    strangers, text, tombstone, unknown,
};
use crate::record::{Recorded, TombstoneReason, UnknownReason};
use crate::store::{Complete, Ending, Reserved, Written};

super::topic!("complete":
    the_holder_records_an_answer,
    sent_twice_it_is_already_done,
    sent_twice_the_first_answer_stands,
    sent_twice_the_first_ttl_stands,
    a_tombstone_is_recorded_once,
    a_late_holder_delivers_the_truth,
    a_late_holder_heals_an_unknown_outcome,
    a_holder_heals_the_unknown_it_told,
    another_claim_records_nothing,
    another_fence_records_nothing,
    a_superseded_holder_records_nothing,
    an_absent_record_is_not_created,
    a_released_attempt_records_nothing,
    a_recorded_answer_never_changes,
    a_tombstone_never_changes,
    nobody_else_writes_to_a_running_attempt,
    nobody_else_writes_to_an_unknown_outcome,
);

async fn replays(b: &Bench, key: u8, answer: &Recorded) -> bool {
    let reply = b.look(key).await;
    matches!(&reply, Reserved::Completed { answer: a, .. } if a == answer)
}

async fn the_holder_records_an_answer(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    assert!(replays(b, 1, &text(1, "a")).await);
    b.advance(LAPSE);
    assert!(replays(b, 1, &text(1, "a")).await, "an answer has no lease");
}

async fn sent_twice_it_is_already_done(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    for _ in 0..2 {
        let written = b.answer(attempt.holder, &text(1, "a")).await;
        assert_eq!(written, Written::AlreadyDone);
    }
    assert!(replays(b, 1, &text(1, "a")).await);
}

async fn sent_twice_the_first_answer_stands(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    let written = b.answer(attempt.holder, &text(1, "b")).await;
    assert_eq!(written, Written::AlreadyDone);
    let written = b.bury(attempt.holder, TombstoneReason::TooLarge).await;
    assert_eq!(written, Written::AlreadyDone);
    assert!(
        replays(b, 1, &text(1, "a")).await,
        "somebody may have seen it"
    );
}

async fn sent_twice_the_first_ttl_stands(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    b.advance(TTL - SECOND);
    let request = Complete {
        holder: attempt.holder,
        ending: Ending::Answer(text(1, "a")),
        ttl_us: None,
    };
    assert_eq!(b.complete(&request).await, Written::AlreadyDone);
    b.advance(SECOND + 1);
    b.take(1).await;
}

async fn a_tombstone_is_recorded_once(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = TombstoneReason::NotDecodable;
    assert_eq!(b.bury(attempt.holder, reason).await, Written::Done);
    assert_eq!(b.bury(attempt.holder, reason).await, Written::AlreadyDone);
    let written = b.answer(attempt.holder, &text(1, "a")).await;
    assert_eq!(written, Written::AlreadyDone);
    assert_eq!(b.look(1).await, tombstone(reason));
}

async fn a_late_holder_delivers_the_truth(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(YEARS);
    let written = b.answer(attempt.holder, &text(1, "a")).await;
    assert_eq!(written, Written::Done, "nobody took over");
    assert!(replays(b, 1, &text(1, "a")).await);
}

async fn a_late_holder_heals_an_unknown_outcome(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    assert_eq!(b.look(1).await, unknown(UnknownReason::Lapsed));
    let written = b.answer(attempt.holder, &text(1, "a")).await;
    assert_eq!(written, Written::Done, "unknown, but nobody took over");
    assert!(replays(b, 1, &text(1, "a")).await);
    let written = b.answer(attempt.holder, &text(1, "a")).await;
    assert_eq!(written, Written::AlreadyDone);
}

async fn a_holder_heals_the_unknown_it_told(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = UnknownReason::ShutDown;
    assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(attempt.holder, reason).await, Written::Done);
    assert_eq!(b.look(1).await, tombstone(reason));
}

async fn another_claim_records_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    let stranger = other_claim(attempt.holder);
    let written = b.answer(stranger, &text(1, "forged")).await;
    assert_eq!(written, Written::Superseded, "the claim must be compared");
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
}

async fn another_fence_records_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    for by in [-1, 1] {
        let stranger = other_fence(attempt.holder, by);
        let written = b.answer(stranger, &text(1, "forged")).await;
        assert_eq!(written, Written::Superseded, "the fence must be compared");
    }
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
}

async fn a_superseded_holder_records_nothing(b: &Bench) {
    let old = b.take(1).await;
    b.advance(LAPSE);
    let new = b.win(&b.rerun(1)).await;
    let written = b.answer(old.holder, &text(1, "old")).await;
    assert_eq!(written, Written::Superseded);
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
    assert_eq!(b.answer(new.holder, &text(1, "new")).await, Written::Done);
    let written = b.answer(old.holder, &text(1, "old")).await;
    assert_eq!(written, Written::Superseded, "never: already done");
    assert!(replays(b, 1, &text(1, "new")).await);
}

async fn an_absent_record_is_not_created(b: &Bench) {
    let attempt = b.take(1).await;
    let absent = crate::store::Holder {
        id: super::bench::id(2),
        ..attempt.holder
    };
    assert_eq!(b.answer(absent, &text(2, "a")).await, Written::Gone);
    assert_eq!(b.take(2).await.won.attempt, 1);
}

async fn a_released_attempt_records_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    let written = b.answer(attempt.holder, &text(1, "a")).await;
    assert_eq!(
        written,
        Written::Superseded,
        "it said that nothing happened"
    );
    let next = b.take(1).await;
    let written = b.answer(attempt.holder, &text(1, "a")).await;
    assert_eq!(written, Written::Superseded);
    assert!(b.renew(next.holder).await);
}

/// Every write by everybody, the holder included, changes nothing.
async fn fixed(b: &Bench, attempt: &Attempt) {
    let stands = b.look(1).await;
    b.nothing_moves(1, attempt.holder, "the holder", &stands)
        .await;
    let given = b.give_back(attempt.holder).await;
    assert_eq!(given, Written::AlreadyDone, "it is no longer a reservation");
    assert_eq!(b.look(1).await, stands);
    for (who, stranger) in strangers(attempt.holder) {
        b.nothing_moves(1, stranger, who, &stands).await;
    }
    let stranger = other_claim(attempt.holder);
    assert_eq!(b.give_back(stranger).await, Written::Superseded);
    for request in [b.rerun(1), b.recover(1)] {
        assert_eq!(b.reserve(&request).await, stands);
    }
    assert_eq!(b.look(1).await, stands);
}

async fn a_recorded_answer_never_changes(b: &Bench) {
    let attempt = b.answered(1, &text(1, "a")).await;
    fixed(b, &attempt).await;
    assert!(replays(b, 1, &text(1, "a")).await);
}

async fn a_tombstone_never_changes(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(attempt.holder, reason).await, Written::Done);
    fixed(b, &attempt).await;
    assert_eq!(b.look(1).await, tombstone(reason));
}

async fn nobody_else_writes_to_a_running_attempt(b: &Bench) {
    let attempt = b.take(1).await;
    let stands = in_progress(LEASE + GRACE);
    for (who, stranger) in strangers(attempt.holder) {
        b.nothing_moves(1, stranger, who, &stands).await;
    }
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn nobody_else_writes_to_an_unknown_outcome(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = UnknownReason::Cancelled;
    assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
    for (who, stranger) in strangers(attempt.holder) {
        b.nothing_moves(1, stranger, who, &unknown(reason)).await;
    }
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}
