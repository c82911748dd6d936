//! Every reply of a reservation.

use super::bench::{
    Attempt, Bench, GRACE, LAPSE, LEASE, TTL, exhausted, in_progress, mismatch, other_payload,
    text, tombstone, unknown, with,
};
use crate::identity::Fingerprint;
use crate::record::{Element, Label, TombstoneReason, UnknownReason};
use crate::store::{Reserve, Reserved, Takeover, Won, Written};

super::topic!("reserve":
    a_fresh_key_is_won,
    sent_twice_it_is_yours,
    sent_twice_after_a_lapse_it_is_yours,
    sent_twice_after_a_renewal_it_is_yours,
    a_claim_never_wins_twice,
    a_claim_takes_over_nothing_of_its_own,
    another_caller_is_told_how_long_to_wait,
    a_call_without_a_payload_is_a_payload_of_its_own,
    another_payload_is_a_mismatch_while_one_runs,
    another_payload_is_never_given_the_answer,
    another_payload_is_a_mismatch_on_a_tombstone,
    another_payload_takes_over_nothing_lapsed,
    another_payload_takes_over_nothing_unknown,
    a_mismatch_names_what_differs,
    a_released_key_runs_with_any_payload,
    an_answer_is_replayed_with_its_time_and_attempt,
    a_failed_answer_is_replayed_as_failed,
    a_tombstone_says_why,
    an_unknown_outcome_says_why,
    a_lookup_changes_nothing,
    text_for_operators_may_be_anything,
);

async fn a_fresh_key_is_won(b: &Bench) {
    let won = b.take(1).await.won;
    let expected = Won {
        fence: won.fence,
        attempt: 1,
        doubt: false,
        doubt_for_us: 0,
        resent: false,
    };
    assert_eq!(won, expected);
    assert!(won.fence > 0, "a fence starts at the store's time");
}

async fn resent(b: &Bench, request: &Reserve, first: &Attempt) {
    let expected = Reserved::Won(Won {
        resent: true,
        ..first.won.clone()
    });
    assert_eq!(
        b.reserve(request).await,
        expected,
        "a lost reply must not lock out its own caller, nor count as an attempt"
    );
}

async fn sent_twice_it_is_yours(b: &Bench) {
    let request = b.request(1);
    let attempt = b.win(&request).await;
    resent(b, &request, &attempt).await;
    resent(b, &request, &attempt).await;
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn sent_twice_after_a_lapse_it_is_yours(b: &Bench) {
    let request = b.rerun(1);
    let attempt = b.win(&request).await;
    b.advance(LAPSE);
    resent(b, &request, &attempt).await;
    assert_eq!(
        b.look(1).await,
        in_progress(LEASE + GRACE),
        "the body starts from the repeated reply, and so does its lease"
    );
}

async fn sent_twice_after_a_renewal_it_is_yours(b: &Bench) {
    let request = b.request(1);
    let attempt = b.win(&request).await;
    b.advance(LEASE / 2);
    assert!(b.renew(attempt.holder).await);
    resent(b, &request, &attempt).await;
    assert_eq!(
        b.look(1).await,
        in_progress(LEASE + GRACE),
        "a repeated reservation must not shorten the lease"
    );
}

/// A request that was under way while its attempt ended: nobody waits for what
/// it would win, and nobody would end it.
async fn comes_late(b: &Bench, request: &Reserve) {
    let reply = b.reserve(request).await;
    assert_eq!(reply, in_progress(0), "a claim must not win twice");
}

async fn a_claim_never_wins_twice(b: &Bench) {
    let request = b.request(1);
    let attempt = b.win(&request).await;
    assert_eq!(b.give_back(attempt.holder).await, Written::Done);
    comes_late(b, &request).await;
    let request = b.request(1);
    let attempt = b.win(&request).await;
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    comes_late(b, &request).await;
    let request = b.request(1);
    let attempt = b.win(&request).await;
    assert_eq!(attempt.won.attempt, 2, "nothing was in the way of it");
    let answer = text(1, "a");
    assert_eq!(b.answer(attempt.holder, &answer).await, Written::Done);
    let reply = b.reserve(&request).await;
    assert!(matches!(&reply, Reserved::Completed { answer: a, .. } if *a == answer));
    b.advance(TTL + 1);
    comes_late(b, &request).await;
    b.take(1).await;
}

async fn a_claim_takes_over_nothing_of_its_own(b: &Bench) {
    for takeover in [Takeover::Rerun, Takeover::Recover] {
        let key = takeover as u8 + 1;
        let request = with(b.request(key), takeover);
        let attempt = b.win(&request).await;
        let reason = UnknownReason::Panicked;
        assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
        comes_late(b, &request).await;
        assert_eq!(b.look(key).await, unknown(reason), "nothing has changed");
        let late = b.answer(attempt.holder, &text(key, "a")).await;
        assert_eq!(late, Written::Done, "the truth of a late holder is taken");
    }
}

async fn another_caller_is_told_how_long_to_wait(b: &Bench) {
    b.take(1).await;
    assert_eq!(b.look(1).await, in_progress(LEASE + GRACE));
    b.advance(LEASE);
    assert_eq!(b.look(1).await, in_progress(GRACE));
    b.advance(GRACE);
    assert_eq!(b.look(1).await, in_progress(0), "not lapsed yet");
}

async fn a_call_without_a_payload_is_a_payload_of_its_own(b: &Bench) {
    let without = |request: Reserve| Reserve {
        fingerprint: Fingerprint::from_bytes([0; 32]),
        elements: Vec::new(),
        ..request
    };
    b.win(&without(b.request(1))).await;
    let reply = b.reserve(&without(b.request(1))).await;
    assert_eq!(reply, in_progress(LEASE + GRACE));
    let expected = Reserved::Mismatch {
        differs: vec!["amount".to_owned(), "currency".to_owned()],
    };
    assert_eq!(b.look(1).await, expected);
}

/// Sends another payload in every mode, and expects a mismatch and no change.
async fn mismatches(b: &Bench, stands: &Reserved) {
    for takeover in [Takeover::Refuse, Takeover::Rerun, Takeover::Recover] {
        let request = with(other_payload(b.request(1)), takeover);
        assert_eq!(
            b.reserve(&request).await,
            mismatch(),
            "the payload must be compared first, with {takeover:?}"
        );
    }
    assert_eq!(&b.look(1).await, stands, "a mismatch must change nothing");
}

async fn another_payload_is_a_mismatch_while_one_runs(b: &Bench) {
    let attempt = b.take(1).await;
    mismatches(b, &in_progress(LEASE + GRACE)).await;
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn another_payload_is_never_given_the_answer(b: &Bench) {
    let answer = text(1, "a");
    b.answered(1, &answer).await;
    let stands = b.look(1).await;
    assert!(matches!(&stands, Reserved::Completed { answer: a, .. } if *a == answer));
    mismatches(b, &stands).await;
}

async fn another_payload_is_a_mismatch_on_a_tombstone(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(attempt.holder, reason).await, Written::Done);
    mismatches(b, &tombstone(reason)).await;
}

async fn another_payload_takes_over_nothing_lapsed(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    mismatches(b, &unknown(UnknownReason::Lapsed)).await;
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn another_payload_takes_over_nothing_unknown(b: &Bench) {
    let attempt = b.take(1).await;
    let reason = UnknownReason::Panicked;
    assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
    mismatches(b, &unknown(reason)).await;
}

async fn a_mismatch_names_what_differs(b: &Bench) {
    let elements = |values: &[(&str, u8)]| -> Vec<Element> {
        let one = |&(label, digest): &(&str, u8)| Element {
            label: label.to_owned(),
            digest: [digest; 8],
        };
        values.iter().map(one).collect()
    };
    let request = |print: u8, values: &[(&str, u8)]| Reserve {
        fingerprint: Fingerprint::from_bytes([print; 32]),
        elements: elements(values),
        ..b.request(1)
    };
    b.win(&request(1, &[("", 0), ("größe \u{0}'\"", 1), ("b", 2)]))
        .await;
    for (values, labels) in [
        (&[("", 9), ("größe \u{0}'\"", 1), ("b", 2)][..], &[""][..]),
        (
            &[("", 0), ("größe \u{0}'\"", 9), ("b", 9)],
            &["größe \u{0}'\"", "b"],
        ),
        (&[("", 0)], &["größe \u{0}'\"", "b"]),
        (
            &[("", 0), ("größe \u{0}'\"", 1), ("b", 2), ("c", 3)],
            &["c"],
        ),
        (&[], &["", "größe \u{0}'\"", "b"]),
    ] {
        let expected = Reserved::Mismatch {
            differs: labels.iter().map(|&label| label.to_owned()).collect(),
        };
        assert_eq!(b.reserve(&request(2, values)).await, expected);
    }
}

async fn a_released_key_runs_with_any_payload(b: &Bench) {
    let first = b.take(1).await;
    assert_eq!(b.release(first.holder).await, Written::Done);
    let second = b.win(&other_payload(b.request(1))).await;
    assert_eq!(second.won.attempt, 2, "the row counts its attempts");
    assert!(!second.won.doubt, "a released attempt left no doubt");
    assert!(second.won.fence > first.won.fence);
    assert_eq!(b.look(1).await, mismatch(), "the payload is the new one");
}

async fn an_answer_is_replayed_with_its_time_and_attempt(b: &Bench) {
    let first = b.take(1).await;
    assert_eq!(b.release(first.holder).await, Written::Done);
    let second = b.take(1).await;
    b.advance(7);
    let finished_us = second.won.fence + 6;
    assert_eq!(b.answer(second.holder, &text(1, "a")).await, Written::Done);
    b.advance(TTL / 2);
    let reply = b.look(1).await;
    let expected = Reserved::Completed {
        answer: text(1, "a"),
        finished_us,
        attempt: 2,
        left_us: Some(TTL - TTL / 2),
    };
    assert_eq!(reply, expected);
    assert_eq!(b.reserve(&b.rerun(1)).await, expected, "also for a rerun");
    assert_eq!(b.reserve(&b.recover(1)).await, expected);
}

async fn a_failed_answer_is_replayed_as_failed(b: &Bench) {
    let mut answer = text(1, "declined");
    answer.failed = true;
    b.answered(1, &answer).await;
    let reply = b.look(1).await;
    assert!(matches!(reply, Reserved::Completed { answer: a, .. } if a == answer));
}

async fn a_tombstone_says_why(b: &Bench) {
    for (key, reason) in [
        (1, TombstoneReason::TooLarge),
        (2, TombstoneReason::NotEncodable),
        (3, TombstoneReason::NotDecodable),
    ] {
        let attempt = b.take(key).await;
        assert_eq!(b.bury(attempt.holder, reason).await, Written::Done);
        for request in [b.request(key), b.rerun(key), b.recover(key)] {
            assert_eq!(b.reserve(&request).await, tombstone(reason));
        }
    }
}

async fn an_unknown_outcome_says_why(b: &Bench) {
    let reasons = [
        UnknownReason::Lapsed,
        UnknownReason::Panicked,
        UnknownReason::Failed,
        UnknownReason::Cancelled,
        UnknownReason::ShutDown,
        UnknownReason::Undecided,
        UnknownReason::Nested,
    ];
    for (key, reason) in (1..).zip(reasons) {
        let attempt = b.take(key).await;
        assert_eq!(b.mark_unknown(attempt.holder, reason).await, Written::Done);
        assert_eq!(b.look(key).await, unknown(reason));
        let request = Reserve {
            max_takeovers: 0,
            ..b.rerun(key)
        };
        assert_eq!(b.reserve(&request).await, exhausted(reason));
    }
}

async fn a_lookup_changes_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    for request in [b.request(1), b.rerun(1), b.recover(1)] {
        assert_eq!(b.reserve(&request).await, in_progress(LEASE + GRACE));
    }
    assert!(b.renew(attempt.holder).await, "it is still held");
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
}

async fn text_for_operators_may_be_anything(b: &Bench) {
    let long = "x".repeat(128);
    let texts = [
        "",
        "'; DROP TABLE idem_records; --",
        "naïve\u{0}\n\u{10ffff}",
        &long,
    ];
    for (key, label) in (1..).zip(texts) {
        let request = Reserve {
            // The engine refuses control characters in a name.
            operation: format!("shop.{}", label.replace(char::is_control, "")),
            label: Some(Label::new(label)),
            scope: Some([key; 32]),
            ..b.request(key)
        };
        let attempt = b.win(&request).await;
        assert_eq!(
            b.answer(attempt.holder, &text(key, "a")).await,
            Written::Done
        );
        let reply = b.look(key).await;
        assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == text(key, "a")));
    }
}
