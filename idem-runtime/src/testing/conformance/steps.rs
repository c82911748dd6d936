//! Steps are for the attempt that takes over, and for nobody else.

use super::bench::{
    Attempt, Bench, LAPSE, TTL, done, id, other_payload, strangers, text, version, with,
};
use super::settle::by_hand;
use crate::record::{TombstoneReason, UnknownReason};
use crate::store::{Capability, Holder, RecordStep, Reserve, Step, Store, Takeover, Written};
use crate::sync::Arc;
use crate::transition::Settlement;

super::topic!("steps" needs Steps:
    a_takeover_gets_what_was_kept,
    a_first_attempt_has_none,
    sent_twice_the_first_one_stays,
    a_stranger_keeps_and_reads_nothing,
    a_superseded_holder_keeps_and_reads_nothing,
    an_absent_record_is_gone,
    a_lapsed_holder_keeps,
    what_has_ended_keeps_nothing,
    renewals_and_repeated_requests_keep_them,
    every_takeover_adds_to_them,
    a_takeover_that_is_given_back_keeps_them,
    an_undecided_probe_keeps_them,
    a_late_takeover_of_another_version_is_told_which_is_whose,
    a_released_key_begins_anew,
    an_expired_answer_begins_anew,
    an_expired_tombstone_begins_anew,
    a_newer_version_begins_anew,
    records_do_not_share_them,
    labels_and_results_are_bytes,
    a_takeover_sees_all_or_a_step_is_refused,
    a_late_step_is_of_no_later_life,
);
super::topic!(
    SWEPT,
    "steps",
    &[Capability::Steps, Capability::Sweep],
    a_swept_key_begins_anew,
);
super::topic!(
    SETTLED,
    "steps",
    &[Capability::Steps, Capability::Admin],
    a_settled_key_begins_anew,
);

fn step(holder: Holder, label: &str, result: &[u8]) -> Step {
    Step::new(
        &holder.id,
        label,
        Some(0),
        [7; 32],
        "json/1",
        result.to_vec(),
    )
}

async fn keep(store: &Arc<dyn Store>, holder: Holder, step: &Step) -> Written {
    let request = RecordStep {
        holder,
        step: step.clone(),
    };
    done(store.record_step(&request).await)
}

async fn read(b: &Bench, holder: Holder) -> Option<Vec<Step>> {
    let mut steps = done(b.store.steps(&holder).await)?;
    steps.sort_by(|a, b| (&a.label, &a.bytes).cmp(&(&b.label, &b.bytes)));
    Some(steps)
}

/// Takes a key and keeps the step `one`.
async fn stepped(b: &Bench, request: &Reserve) -> (Attempt, Step) {
    let attempt = b.win(request).await;
    let one = step(attempt.holder, "one", b"1");
    assert_eq!(keep(&b.store, attempt.holder, &one).await, Written::Done);
    (attempt, one)
}

/// Loses an attempt and takes it over.
async fn taken_over(b: &Bench, key: u8) -> Attempt {
    b.advance(LAPSE);
    b.win(&b.rerun(key)).await
}

/// An attempt begins a new life of the key: even if it dies at once, whoever
/// takes over gets nothing of an earlier one.
async fn is_new(b: &Bench, request: &Reserve) {
    let attempt = b.win(request).await;
    assert!(!attempt.won.doubt, "this case is about new lives");
    assert_eq!(read(b, attempt.holder).await, Some(vec![]));
    b.advance(LAPSE);
    let next = Reserve {
        claim: b.request(1).claim,
        ..with(request.clone(), Takeover::Rerun)
    };
    let next = b.win(&next).await;
    assert_eq!(read(b, next.holder).await, Some(vec![]));
}

async fn a_takeover_gets_what_was_kept(b: &Bench) {
    let (attempt, one) = stepped(b, &b.request(1)).await;
    let basis = [0xfe; 32];
    let bytes: Vec<u8> = (0..=255).collect();
    let two = Step::new(&id(1), "two", None, basis, "other/2", bytes);
    assert_eq!(keep(&b.store, attempt.holder, &two).await, Written::Done);
    let next = taken_over(b, 1).await;
    let expected = Some(vec![one, two]);
    assert_eq!(read(b, next.holder).await, expected);
    let another = b.another().await;
    let seen = done(another.steps(&next.holder).await);
    assert_eq!(seen.map(|steps| steps.len()), Some(2));
    assert_eq!(
        read(b, next.holder).await,
        expected,
        "reading takes nothing"
    );
}

async fn a_first_attempt_has_none(b: &Bench) {
    let attempt = b.take(1).await;
    assert_eq!(read(b, attempt.holder).await, Some(vec![]));
}

async fn sent_twice_the_first_one_stays(b: &Bench) {
    let (attempt, one) = stepped(b, &b.request(1)).await;
    let other = step(attempt.holder, "one", b"forged");
    for again in [&one, &other] {
        let written = keep(&b.store, attempt.holder, again).await;
        assert_eq!(written, Written::AlreadyDone);
    }
    let next = taken_over(b, 1).await;
    assert_eq!(read(b, next.holder).await, Some(vec![one]));
}

async fn a_stranger_keeps_and_reads_nothing(b: &Bench) {
    let (attempt, one) = stepped(b, &b.request(1)).await;
    for (who, stranger) in strangers(attempt.holder) {
        let forged = step(stranger, "two", b"forged");
        let written = keep(&b.store, stranger, &forged).await;
        assert_eq!(written, Written::Superseded, "{who}");
        assert_eq!(read(b, stranger).await, None, "{who}");
    }
    let next = taken_over(b, 1).await;
    assert_eq!(read(b, next.holder).await, Some(vec![one]));
}

async fn a_superseded_holder_keeps_and_reads_nothing(b: &Bench) {
    let (old, one) = stepped(b, &b.request(1)).await;
    let next = taken_over(b, 1).await;
    for late in [&one, &step(old.holder, "two", b"late")] {
        let written = keep(&b.store, old.holder, late).await;
        assert_eq!(written, Written::Superseded);
    }
    assert_eq!(read(b, old.holder).await, None);
    assert_eq!(read(b, next.holder).await, Some(vec![one]));
}

async fn an_absent_record_is_gone(b: &Bench) {
    let holder = b.take(1).await.holder;
    let absent = Holder {
        id: id(2),
        ..holder
    };
    let written = keep(&b.store, absent, &step(absent, "one", b"1")).await;
    assert_eq!(written, Written::Gone);
    assert_eq!(read(b, absent).await, None);
    is_new(b, &b.request(2)).await;
}

async fn a_lapsed_holder_keeps(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE);
    let one = step(attempt.holder, "one", b"1");
    assert_eq!(keep(&b.store, attempt.holder, &one).await, Written::Done);
    let next = b.win(&b.rerun(1)).await;
    assert_eq!(read(b, next.holder).await, Some(vec![one]));
}

async fn what_has_ended_keeps_nothing(b: &Bench) {
    for (key, ending) in (1..).zip(["answer", "tombstone", "released", "unknown"]) {
        let holder = b.take(key).await.holder;
        let ended = match ending {
            "answer" => b.answer(holder, &text(key, "a")).await,
            "tombstone" => b.bury(holder, TombstoneReason::TooLarge).await,
            "released" => b.release(holder).await,
            _ => b.mark_unknown(holder, UnknownReason::Failed).await,
        };
        assert_eq!(ended, Written::Done);
        let written = keep(&b.store, holder, &step(holder, "one", b"1")).await;
        assert_eq!(written, Written::Superseded, "{ending}");
        assert_eq!(read(b, holder).await, None, "{ending}");
    }
}

async fn renewals_and_repeated_requests_keep_them(b: &Bench) {
    let request = b.request(1);
    let (attempt, one) = stepped(b, &request).await;
    assert!(b.renew(attempt.holder).await);
    b.advance(1);
    b.reserve(&request).await;
    b.look(1).await;
    assert_eq!(read(b, attempt.holder).await, Some(vec![one.clone()]));
    let next = taken_over(b, 1).await;
    assert_eq!(read(b, next.holder).await, Some(vec![one]));
}

async fn every_takeover_adds_to_them(b: &Bench) {
    let (_, one) = stepped(b, &b.request(1)).await;
    let second = taken_over(b, 1).await;
    // One of the same label is kept beside it: who reads them decides.
    let other = step(second.holder, "one", b"again");
    let two = step(second.holder, "two", b"2");
    for more in [&other, &two] {
        assert_eq!(keep(&b.store, second.holder, more).await, Written::Done);
    }
    let reason = UnknownReason::Failed;
    assert_eq!(b.mark_unknown(second.holder, reason).await, Written::Done);
    let third = b.win(&b.rerun(1)).await;
    assert_eq!(read(b, third.holder).await, Some(vec![one, other, two]));
}

async fn a_takeover_that_is_given_back_keeps_them(b: &Bench) {
    let (_, one) = stepped(b, &b.request(1)).await;
    let second = taken_over(b, 1).await;
    assert_eq!(b.give_back(second.holder).await, Written::Done);
    let third = b.win(&b.rerun(1)).await;
    assert_eq!(read(b, third.holder).await, Some(vec![one]));
}

async fn an_undecided_probe_keeps_them(b: &Bench) {
    let (_, one) = stepped(b, &b.request(1)).await;
    b.advance(LAPSE);
    let second = b.win(&b.recover(1)).await;
    assert_eq!(b.undecided(second.holder, 1).await, Written::Done);
    b.advance(2);
    let third = b.win(&b.recover(1)).await;
    assert_eq!(read(b, third.holder).await, Some(vec![one]));
}

async fn a_late_takeover_of_another_version_is_told_which_is_whose(b: &Bench) {
    let (_, one) = stepped(b, &b.versioned(1, 1)).await;
    b.advance(LAPSE);
    let request = with(other_payload(b.versioned(1, 2)), Takeover::Rerun);
    let second = b.win(&request).await;
    let mut other = step(second.holder, "one", b"of version 2");
    other.basis = [9; 32];
    assert_eq!(keep(&b.store, second.holder, &other).await, Written::Done);
    let steps = read(b, second.holder).await;
    assert_eq!(steps, Some(vec![one, other]), "with what they belong to");
}

async fn a_released_key_begins_anew(b: &Bench) {
    let (attempt, _) = stepped(b, &b.request(1)).await;
    assert_eq!(b.release(attempt.holder).await, Written::Done);
    is_new(b, &b.request(1)).await;
}

async fn an_expired_answer_begins_anew(b: &Bench) {
    let (attempt, _) = stepped(b, &b.request(1)).await;
    let answered = b.answer(attempt.holder, &text(1, "a")).await;
    assert_eq!(answered, Written::Done);
    b.advance(TTL + 1);
    is_new(b, &b.request(1)).await;
}

async fn an_expired_tombstone_begins_anew(b: &Bench) {
    let (attempt, _) = stepped(b, &b.request(1)).await;
    let buried = b.bury(attempt.holder, TombstoneReason::TooLarge).await;
    assert_eq!(buried, Written::Done);
    b.advance(TTL + 1);
    is_new(b, &b.request(1)).await;
}

async fn a_newer_version_begins_anew(b: &Bench) {
    let (attempt, _) = stepped(b, &b.versioned(1, 1)).await;
    let answered = b.answer(attempt.holder, &text(1, "a")).await;
    assert_eq!(answered, Written::Done);
    is_new(b, &b.versioned(1, 2)).await;
}

async fn a_swept_key_begins_anew(b: &Bench) {
    let (attempt, _) = stepped(b, &b.request(1)).await;
    let (other, kept) = stepped(b, &b.request(2)).await;
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
    b.advance(TTL + 1);
    assert_eq!(b.sweep().await, 1);
    is_new(b, &b.request(1)).await;
    assert_eq!(read(b, other.holder).await, Some(vec![kept]), "still open");
}

async fn a_settled_key_begins_anew(b: &Bench) {
    let found = Settlement::Done(text(3, "by hand"));
    for (key, settlement) in [
        (1, Settlement::NotDone),
        (2, Settlement::Forgotten),
        (3, found),
    ] {
        let (attempt, _) = stepped(b, &b.request(key)).await;
        b.advance(LAPSE);
        let request = by_hand(key, attempt.won.fence, settlement);
        assert_eq!(b.settle(&request).await, Written::Done);
        b.advance(TTL + 1);
        is_new(b, &b.request(key)).await;
    }
}

async fn records_do_not_share_them(b: &Bench) {
    let (first, one) = stepped(b, &b.request(1)).await;
    let (second, _) = stepped(b, &b.request(2)).await;
    assert_eq!(b.release(second.holder).await, Written::Done);
    is_new(b, &b.request(2)).await;
    assert_eq!(read(b, first.holder).await, Some(vec![one]));
}

async fn labels_and_results_are_bytes(b: &Bench) {
    let attempt = b.take(1).await;
    let longest = "x".repeat(128);
    let mut steps = Vec::new();
    for label in ["A", "a", "a ", "a'\"\\", "é", "\u{1f980}", &longest] {
        let result = format!("{label}\n\0 of it");
        steps.push(step(attempt.holder, label, result.as_bytes()));
    }
    steps.push(step(attempt.holder, "empty", b""));
    for one in &steps {
        assert_eq!(keep(&b.store, attempt.holder, one).await, Written::Done);
    }
    let next = taken_over(b, 1).await;
    steps.sort_by(|a, b| a.label.cmp(&b.label));
    let found = read(b, next.holder).await;
    assert_eq!(found.as_ref(), Some(&steps));
    assert!(
        found
            .into_iter()
            .flatten()
            .all(|step| step.is_intact(&id(1)))
    );
}

async fn a_takeover_sees_all_or_a_step_is_refused(b: &Bench) {
    for key in 0..20 {
        let old = b.take(key).await.holder;
        b.advance(LAPSE);
        let (store, one) = (Arc::clone(&b.store), step(old, "one", b"1"));
        let late = tokio::spawn(async move { keep(&store, old, &one).await });
        let next = b.win(&b.rerun(key)).await;
        let seen = read(b, next.holder).await;
        let Ok(written) = late.await else {
            continue;
        };
        assert_eq!(read(b, next.holder).await, seen, "nothing comes later");
        let kept = seen.is_some_and(|steps| steps.len() == 1);
        assert_eq!(written == Written::Done, kept, "{written:?}");
    }
}

async fn a_late_step_is_of_no_later_life(b: &Bench) {
    for key in 0..20 {
        let old = b.win(&b.versioned(key, 1)).await.holder;
        let (store, one) = (Arc::clone(&b.store), step(old, "one", b"1"));
        let late = tokio::spawn(async move { keep(&store, old, &one).await });
        assert_eq!(b.release(old).await, Written::Done);
        let newer = Reserve {
            version: Some(version(1)),
            ..b.request(key)
        };
        is_new(b, &newer).await;
        late.await.ok();
        let third = Reserve {
            version: Some(version(1)),
            ..b.rerun(key)
        };
        b.advance(LAPSE);
        let third = b.win(&third).await;
        assert_eq!(read(b, third.holder).await, Some(vec![]));
    }
}
