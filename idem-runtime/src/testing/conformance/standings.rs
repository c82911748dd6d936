//! Where many records stand, in one question.

use super::bench::{Bench, GRACE, LAPSE, LEASE, TTL, YEARS, done, id, in_progress, text};
use crate::identity::RecordId;
use crate::record::{Standing, TombstoneReason, UnknownReason};
use crate::store::{Complete, Ending, Release, Reserve, Standings, Store, Written};

super::topic!("standings" needs Standings:
    every_record_is_told_as_it_stands,
    a_thousand_are_told_in_their_order,
    what_is_asked_for_twice_is_told_twice,
    nothing_is_told_of_nothing,
    what_has_ended_counts_to_its_last_microsecond,
    an_attempt_lapses_as_late_as_the_question_says,
    what_is_kept_for_ever_is_told_for_ever,
    a_look_changes_nothing,
    a_change_is_seen_by_the_next_look_of_anybody,
    ids_are_compared_in_full,
);

async fn ask(store: &dyn Store, ids: Vec<RecordId>, grace_us: i64) -> Vec<Option<Standing>> {
    done(store.standings(&Standings { ids, grace_us }).await)
}

impl Bench {
    async fn standings<const N: usize>(&self, keys: [u8; N]) -> Vec<Option<Standing>> {
        ask(&*self.store, keys.map(id).to_vec(), GRACE).await
    }
}

const ALL: [u8; 6] = [1, 2, 3, 4, 5, 6];

/// One record of each kind, and none of key 6.
async fn one_of_each(b: &Bench) -> [Option<Standing>; 6] {
    b.take(1).await;
    b.answered(2, &text(2, "a")).await;
    let buried = b.take(3).await;
    let written = b.bury(buried.holder, TombstoneReason::TooLarge).await;
    assert_eq!(written, Written::Done);
    let released = b.take(4).await;
    assert_eq!(b.release(released.holder).await, Written::Done);
    let doubtful = b.take(5).await;
    let written = b
        .mark_unknown(doubtful.holder, UnknownReason::Panicked)
        .await;
    assert_eq!(written, Written::Done);
    [
        Some(Standing::InProgress),
        Some(Standing::Completed),
        Some(Standing::Tombstone),
        Some(Standing::Released),
        Some(Standing::Unknown),
        None,
    ]
}

async fn every_record_is_told_as_it_stands(b: &Bench) {
    let expected = one_of_each(b).await;
    assert_eq!(b.standings(ALL).await, expected);
    b.advance(LAPSE);
    let mut later = expected;
    later[0] = Some(Standing::Lapsed);
    assert_eq!(b.standings(ALL).await, later);
}

async fn a_thousand_are_told_in_their_order(b: &Bench) {
    // Neither in the order of their ids nor in that of their records.
    let ids: Vec<_> = (0..Standings::MOST)
        .map(|at| {
            let number = u64::try_from(at * 7_919 % 1_000).unwrap_or(0);
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            bytes[24..].copy_from_slice(&number.to_be_bytes());
            RecordId::from_bytes(bytes)
        })
        .collect();
    let is_there = |at: usize| at.is_multiple_of(37);
    for (_, &id) in ids.iter().enumerate().filter(|(at, _)| is_there(*at)) {
        b.win(&Reserve { id, ..b.request(0) }).await;
    }
    let expected: Vec<_> = (0..ids.len())
        .map(|at| is_there(at).then_some(Standing::InProgress))
        .collect();
    assert_eq!(ask(&*b.store, ids, GRACE).await, expected);
}

async fn what_is_asked_for_twice_is_told_twice(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    b.take(2).await;
    let (done, runs) = (Some(Standing::Completed), Some(Standing::InProgress));
    let told = b.standings([2, 1, 3, 1, 2, 3]).await;
    assert_eq!(told, [runs, done, None, done, runs, None]);
}

async fn nothing_is_told_of_nothing(b: &Bench) {
    b.take(1).await;
    assert_eq!(b.standings([]).await, []);
}

async fn what_has_ended_counts_to_its_last_microsecond(b: &Bench) {
    let mut expected = one_of_each(b).await;
    expected[0] = Some(Standing::Lapsed);
    b.advance(TTL);
    assert_eq!(b.standings(ALL).await, expected, "the last microsecond");
    b.advance(1);
    for at in [1, 2, 3] {
        expected[at] = None;
    }
    assert_eq!(b.standings(ALL).await, expected, "one later, not swept");
    b.sweep().await;
    assert_eq!(b.standings(ALL).await, expected, "swept");
}

async fn an_attempt_lapses_as_late_as_the_question_says(b: &Bench) {
    b.take(1).await;
    let at = async |grace_us| ask(&*b.store, vec![id(1)], grace_us).await[0];
    b.advance(LEASE);
    assert_eq!(at(0).await, Some(Standing::InProgress), "the lease's end");
    b.advance(1);
    assert_eq!(at(0).await, Some(Standing::Lapsed));
    assert_eq!(at(1).await, Some(Standing::InProgress));
    b.advance(GRACE);
    assert_eq!(at(GRACE).await, Some(Standing::Lapsed));
    assert_eq!(at(i64::MAX).await, Some(Standing::InProgress));
}

async fn what_is_kept_for_ever_is_told_for_ever(b: &Bench) {
    let attempt = b.take(1).await;
    let for_ever = Complete {
        holder: attempt.holder,
        ending: Ending::Answer(text(1, "a")),
        ttl_us: None,
    };
    assert_eq!(b.complete(&for_ever).await, Written::Done);
    let attempt = b.take(2).await;
    let release = Release {
        holder: attempt.holder,
        ttl_us: None,
        probed: false,
    };
    assert_eq!(done(b.store.release(&release).await), Written::Done);
    let doubtful = b.take(3).await;
    b.mark_unknown(doubtful.holder, UnknownReason::Failed).await;
    b.advance(YEARS);
    b.sweep().await;
    assert_eq!(
        b.standings([1, 2, 3]).await,
        [
            Some(Standing::Completed),
            Some(Standing::Released),
            Some(Standing::Unknown)
        ]
    );
}

async fn a_look_changes_nothing(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LAPSE - 1);
    assert_eq!(b.standings([1]).await, [Some(Standing::InProgress)]);
    assert_eq!(b.look(1).await, in_progress(0));
    b.advance(1);
    assert_eq!(b.standings([1]).await, [Some(Standing::Lapsed)]);
    // Who refuses would have made it unknown, and a doubt is not renewed.
    assert!(b.renew(attempt.holder).await, "late, and not replaced");
    assert_eq!(
        b.standings([1, 2]).await,
        [Some(Standing::InProgress), None]
    );
    assert_eq!(b.take(2).await.won.attempt, 1, "and none was made");
}

async fn a_change_is_seen_by_the_next_look_of_anybody(b: &Bench) {
    let other = b.another().await;
    let look = async || ask(&*other, vec![id(1)], GRACE).await[0];
    assert_eq!(look().await, None);
    let attempt = b.take(1).await;
    assert_eq!(look().await, Some(Standing::InProgress));
    assert_eq!(b.answer(attempt.holder, &text(1, "a")).await, Written::Done);
    assert_eq!(look().await, Some(Standing::Completed));
}

async fn ids_are_compared_in_full(b: &Bench) {
    let plain = [b'a'; 32];
    let id = RecordId::from_bytes(plain);
    b.win(&Reserve { id, ..b.request(0) }).await;
    let mut alike = vec![[b'A'; 32], [0; 32], [0xff; 32], [b'%'; 32]];
    for (at, byte) in [(0, 0), (15, b'b'), (31, 0), (31, b' '), (31, b'A')] {
        let mut id = plain;
        id[at] = byte;
        alike.push(id);
    }
    let others = alike.len();
    alike.push(plain);
    let ids = alike.into_iter().map(RecordId::from_bytes).collect();
    let mut expected = vec![None; others];
    expected.push(Some(Standing::InProgress));
    assert_eq!(ask(&*b.store, ids, GRACE).await, expected);
}
