//! An older message never runs after a newer one.

use super::bench::{
    Attempt, Bench, GRACE, LAPSE, LEASE, TTL, YEARS, in_progress, mismatch, other_payload, text,
    tombstone, unknown, version, version_of,
};
use crate::record::{TombstoneReason, UnknownReason};
use crate::store::{Reserve, Reserved, Takeover, Won, Written};

super::topic!("version":
    an_older_version_is_stale,
    an_older_version_learns_the_newest_answer,
    an_equal_version_is_replayed,
    a_newer_version_runs,
    a_newer_version_sent_twice_is_yours,
    versions_are_compared_as_bytes,
    a_payload_is_compared_between_equal_versions,
    older_and_equal_versions_are_answered_meanwhile,
    another_version_waits_while_one_runs,
    a_first_version_in_progress_makes_nothing_stale,
    a_newer_version_that_did_nothing_changes_nothing,
    a_newer_version_given_back_changes_nothing,
    a_newer_version_may_be_released_again_and_again,
    an_unknown_newer_version_is_not_run_over,
    a_takeover_keeps_what_was_recorded,
    a_failed_version_makes_older_ones_stale,
    a_newer_version_runs_after_a_tombstone,
    an_expired_tombstone_still_makes_older_versions_stale,
    an_applied_version_outlives_its_ttl,
    a_superseded_version_records_nothing,
);
super::topic!(
    SWEPT,
    "version",
    &[crate::store::Capability::Sweep],
    a_version_that_never_applied_is_swept
);

async fn apply(b: &Bench, number: u8, answer: &str) -> Attempt {
    let attempt = b.win(&b.versioned(1, number)).await;
    assert_eq!(
        b.answer(attempt.holder, &text(1, answer)).await,
        Written::Done
    );
    attempt
}

async fn ask(b: &Bench, number: u8) -> Reserved {
    b.reserve(&b.versioned(1, number)).await
}

/// Asserts that it is stale, since version `number` is recorded.
fn is_stale(reply: &Reserved, number: u8) {
    assert!(
        matches!(reply, Reserved::Stale { recorded, .. } if *recorded == version(number)),
        "expected version {number} to be recorded, got {reply:?}"
    );
}

fn replays(reply: &Reserved, expected: &str) {
    assert!(
        matches!(reply, Reserved::Completed { answer, .. } if *answer == text(1, expected)),
        "expected the answer {expected:?}, got {reply:?}"
    );
}

async fn an_older_version_is_stale(b: &Bench) {
    apply(b, 5, "five").await;
    for number in 0..5 {
        is_stale(&ask(b, number).await, 5);
        let request = other_payload(b.versioned(1, number));
        is_stale(&b.reserve(&request).await, 5);
        let request = Reserve {
            takeover: Takeover::Rerun,
            ..b.versioned(1, number)
        };
        is_stale(&b.reserve(&request).await, 5);
    }
}

/// What an older version is told of the recorded one.
async fn newest(b: &Bench, number: u8) -> (Option<u8>, Reserved) {
    let reply = ask(b, number).await;
    let is_stale = matches!(reply, Reserved::Stale { .. });
    assert!(is_stale, "a newer version is recorded, got {reply:?}");
    match reply {
        Reserved::Stale {
            applied, newest, ..
        } => (applied.map(|version| version.as_bytes()[0]), *newest),
        other => (None, other),
    }
}

async fn an_older_version_learns_the_newest_answer(b: &Bench) {
    let mut declined = text(1, "declined");
    declined.failed = true;
    let is_declined = |reply: &Reserved| matches!(reply, Reserved::Completed { answer, .. } if *answer == declined);
    let four = b.win(&b.versioned(1, 4)).await;
    assert_eq!(b.answer(four.holder, &declined).await, Written::Done);
    let (applied, reply) = newest(b, 3).await;
    assert!(applied.is_none() && is_declined(&reply), "{reply:?}");

    apply(b, 5, "five").await;
    let (applied, reply) = newest(b, 3).await;
    assert_eq!(applied, Some(5));
    replays(&reply, "five");
    let six = b.win(&other_payload(b.versioned(1, 6))).await;
    let (applied, reply) = newest(b, 4).await;
    assert_eq!(applied, Some(5));
    replays(&reply, "five");
    assert_eq!(b.answer(six.holder, &declined).await, Written::Done);
    let (applied, reply) = newest(b, 5).await;
    assert!(applied == Some(5) && is_declined(&reply), "{reply:?}");

    let seven = b.win(&b.versioned(1, 7)).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(seven.holder, reason).await, Written::Done);
    assert_eq!(newest(b, 6).await, (Some(5), tombstone(reason)));
}

async fn an_equal_version_is_replayed(b: &Bench) {
    apply(b, 5, "five").await;
    replays(&ask(b, 5).await, "five");
    replays(&b.look(1).await, "five");
}

async fn a_newer_version_runs(b: &Bench) {
    let five = apply(b, 5, "five").await;
    let six = b.win(&other_payload(b.versioned(1, 6))).await;
    let expected = Won {
        fence: six.won.fence,
        attempt: 1,
        doubt: false,
        doubt_for_us: 0,
        resent: false,
    };
    assert_eq!(six.won, expected);
    assert!(
        six.won.fence > five.won.fence,
        "so a resource can compare it"
    );
    assert_eq!(b.answer(six.holder, &text(1, "six")).await, Written::Done);
    is_stale(&ask(b, 5).await, 6);
    replays(&b.reserve(&other_payload(b.versioned(1, 6))).await, "six");
}

async fn a_newer_version_sent_twice_is_yours(b: &Bench) {
    apply(b, 5, "five").await;
    let request = b.versioned(1, 6);
    let six = b.win(&request).await;
    let expected = Reserved::Won(Won {
        resent: true,
        ..six.won.clone()
    });
    assert_eq!(b.reserve(&request).await, expected);
}

async fn versions_are_compared_as_bytes(b: &Bench) {
    let long = [0xff; 32];
    let rising: &[&[u8]] = &[
        &[],
        &[0],
        &[0, 0],
        &[0, 1],
        &[1],
        &[9],
        &[10],
        &[0x7f, 0xff],
        &[0x80],
        &[0xff],
        &[0xff, 0],
        &long,
    ];
    let request = |bytes: &[u8]| Reserve {
        version: Some(version_of(bytes)),
        ..b.request(1)
    };
    for (number, bytes) in rising.iter().enumerate() {
        let attempt = b.win(&request(bytes)).await;
        assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
        for older in &rising[..number] {
            let reply = b.reserve(&request(older)).await;
            assert!(
                matches!(&reply, Reserved::Stale { recorded, .. } if *recorded == version_of(bytes)),
                "{older:?} is older than {bytes:?}, got {reply:?}"
            );
        }
        replays(&b.reserve(&request(bytes)).await, "a");
    }
}

async fn a_payload_is_compared_between_equal_versions(b: &Bench) {
    apply(b, 5, "five").await;
    let same = other_payload(b.versioned(1, 5));
    assert_eq!(b.reserve(&same).await, mismatch());
    b.win(&other_payload(b.versioned(1, 6))).await;
    assert_eq!(
        b.reserve(&b.versioned(1, 6)).await,
        mismatch(),
        "also with the version that runs"
    );
    replays(&ask(b, 5).await, "five");
    let same = other_payload(b.versioned(1, 5));
    assert!(
        matches!(b.reserve(&same).await, Reserved::Mismatch { .. }),
        "the recorded answer is the first payload's"
    );
}

async fn older_and_equal_versions_are_answered_meanwhile(b: &Bench) {
    apply(b, 5, "five").await;
    let six = b.win(&b.versioned(1, 6)).await;
    is_stale(&ask(b, 4).await, 5);
    replays(&ask(b, 5).await, "five");
    b.advance(LAPSE);
    is_stale(&ask(b, 4).await, 5);
    replays(&ask(b, 5).await, "five");
    assert!(b.renew(six.holder).await);
}

async fn another_version_waits_while_one_runs(b: &Bench) {
    apply(b, 5, "five").await;
    let six = b.win(&b.versioned(1, 6)).await;
    for number in [6, 7] {
        assert_eq!(ask(b, number).await, in_progress(LEASE + GRACE));
    }
    let seven = other_payload(b.versioned(1, 7));
    assert_eq!(b.reserve(&seven).await, in_progress(LEASE + GRACE));
    assert_eq!(b.answer(six.holder, &text(1, "six")).await, Written::Done);
    b.win(&b.versioned(1, 7)).await;
}

async fn a_first_version_in_progress_makes_nothing_stale(b: &Bench) {
    let five = b.win(&b.versioned(1, 5)).await;
    for number in [4, 5, 6] {
        assert_eq!(ask(b, number).await, in_progress(LEASE + GRACE));
    }
    assert_eq!(b.release(five.holder).await, Written::Done);
    b.win(&b.versioned(1, 4)).await;
}

async fn a_newer_version_that_did_nothing_changes_nothing(b: &Bench) {
    apply(b, 5, "five").await;
    let six = b.win(&b.versioned(1, 6)).await;
    assert_eq!(b.release(six.holder).await, Written::Done);
    is_stale(&ask(b, 4).await, 5);
    replays(&ask(b, 5).await, "five");
    b.win(&b.versioned(1, 6)).await;
}

async fn a_newer_version_given_back_changes_nothing(b: &Bench) {
    apply(b, 5, "five").await;
    let six = b.win(&b.versioned(1, 6)).await;
    assert_eq!(b.give_back(six.holder).await, Written::Done);
    is_stale(&ask(b, 4).await, 5);
    replays(&ask(b, 5).await, "five");
    b.win(&b.versioned(1, 6)).await;
}

async fn a_newer_version_may_be_released_again_and_again(b: &Bench) {
    apply(b, 5, "five").await;
    for number in [6, 7, 6, 9] {
        let newer = b.win(&other_payload(b.versioned(1, number))).await;
        is_stale(&ask(b, 4).await, 5);
        replays(&ask(b, 5).await, "five");
        assert_eq!(b.release(newer.holder).await, Written::Done);
        is_stale(&ask(b, 4).await, 5);
        replays(&ask(b, 5).await, "five");
    }
    let newer = b.win(&b.versioned(1, 9)).await;
    assert_eq!(b.give_back(newer.holder).await, Written::Done);
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0, "five was applied");
    let newer = b.win(&b.versioned(1, 9)).await;
    assert_eq!(b.release(newer.holder).await, Written::Done);
    is_stale(&ask(b, 4).await, 5);
}

async fn an_unknown_newer_version_is_not_run_over(b: &Bench) {
    apply(b, 5, "five").await;
    let six = b.win(&b.versioned(1, 6)).await;
    let reason = UnknownReason::Panicked;
    assert_eq!(b.mark_unknown(six.holder, reason).await, Written::Done);
    is_stale(&ask(b, 4).await, 5);
    replays(&ask(b, 5).await, "five");
    for number in [6, 7] {
        assert_eq!(ask(b, number).await, unknown(reason));
    }
    assert_eq!(b.answer(six.holder, &text(1, "six")).await, Written::Done);
    is_stale(&ask(b, 5).await, 6);
}

async fn a_takeover_keeps_what_was_recorded(b: &Bench) {
    apply(b, 5, "five").await;
    b.win(&b.versioned(1, 6)).await;
    b.advance(LAPSE);
    let taken = b
        .win(&Reserve {
            takeover: Takeover::Rerun,
            ..b.versioned(1, 7)
        })
        .await;
    assert_eq!(taken.won.attempt, 2);
    is_stale(&ask(b, 4).await, 5);
    replays(&ask(b, 5).await, "five");
    assert_eq!(b.release(taken.holder).await, Written::Done);
    is_stale(&ask(b, 4).await, 5);
    assert_eq!(ask(b, 7).await, unknown(UnknownReason::Failed));
}

async fn a_failed_version_makes_older_ones_stale(b: &Bench) {
    apply(b, 5, "five").await;
    let six = b.win(&b.versioned(1, 6)).await;
    let mut declined = text(1, "declined");
    declined.failed = true;
    assert_eq!(b.answer(six.holder, &declined).await, Written::Done);
    is_stale(&ask(b, 5).await, 6);
    let reply = ask(b, 6).await;
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer == declined));
    b.win(&b.versioned(1, 7)).await;
}

async fn a_newer_version_runs_after_a_tombstone(b: &Bench) {
    let five = b.win(&b.versioned(1, 5)).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(five.holder, reason).await, Written::Done);
    is_stale(&ask(b, 4).await, 5);
    assert_eq!(ask(b, 5).await, tombstone(reason));
    let six = b.win(&other_payload(b.versioned(1, 6))).await;
    assert!(six.won.fence > five.won.fence);
    is_stale(&ask(b, 4).await, 5);
    assert_eq!(b.release(six.holder).await, Written::Done);
    is_stale(&ask(b, 4).await, 5);
    let reply = ask(b, 5).await;
    assert!(
        matches!(reply, Reserved::Tombstone { .. }),
        "it is done, and has no answer: {reply:?}"
    );
    let six = b.win(&b.versioned(1, 6)).await;
    assert_eq!(b.answer(six.holder, &text(1, "six")).await, Written::Done);
    replays(&ask(b, 6).await, "six");
}

async fn an_expired_tombstone_still_makes_older_versions_stale(b: &Bench) {
    apply(b, 5, "five").await;
    let six = b.win(&b.versioned(1, 6)).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(b.bury(six.holder, reason).await, Written::Done);
    b.advance(TTL + 1);
    assert_eq!(b.sweep().await, 0, "five was applied");
    let seven = b.win(&b.versioned(1, 7)).await;
    assert_eq!(b.release(seven.holder).await, Written::Done);
    for number in [4, 5] {
        is_stale(&ask(b, number).await, 6);
    }
}

async fn an_applied_version_outlives_its_ttl(b: &Bench) {
    apply(b, 5, "five").await;
    b.advance(TTL + 1);
    assert_eq!(b.sweep().await, 0, "it is what makes a late message stale");
    b.advance(YEARS);
    assert_eq!(b.sweep().await, 0);
    is_stale(&ask(b, 4).await, 5);
    replays(&ask(b, 5).await, "five");
    b.win(&b.versioned(1, 6)).await;
}

async fn a_version_that_never_applied_is_swept(b: &Bench) {
    let five = b.win(&b.versioned(1, 5)).await;
    let mut declined = text(1, "declined");
    declined.failed = true;
    assert_eq!(b.answer(five.holder, &declined).await, Written::Done);
    is_stale(&ask(b, 4).await, 5);
    b.advance(TTL + 1);
    assert_eq!(b.sweep().await, 1);
    b.win(&b.versioned(1, 4)).await;
}

async fn a_superseded_version_records_nothing(b: &Bench) {
    apply(b, 5, "five").await;
    let six = b.win(&b.versioned(1, 6)).await;
    b.advance(LAPSE);
    let seven = b
        .win(&Reserve {
            takeover: Takeover::Rerun,
            ..b.versioned(1, 7)
        })
        .await;
    let late = b.answer(six.holder, &text(1, "six")).await;
    assert_eq!(late, Written::Superseded);
    replays(&ask(b, 5).await, "five");
    assert_eq!(
        b.answer(seven.holder, &text(1, "seven")).await,
        Written::Done
    );
    is_stale(&ask(b, 6).await, 7);
}
