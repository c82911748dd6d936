//! What operators see: pages, single records, counts.

#![expect(clippy::panic, reason = "a case fails by panicking")]

use super::bench::{
    Attempt, Bench, GRACE, LAPSE, LEASE, MAX_TAKEOVERS, SECOND, done, id, text, unknown,
};
use crate::identity::RecordId;
use crate::record::{Label, Record, Standing, State, UnknownReason};
use crate::store::{
    Count, Counts, Page, Reserve, Reserved, Scan, Seen, Settle, StoreAdmin, Written,
};

super::topic!("admin" needs Admin:
    an_empty_store_has_one_empty_page,
    pages_of_one_show_each_record_once_and_in_order,
    a_full_page_knows_whether_it_is_the_last,
    a_page_starts_behind_any_id,
    a_page_shows_one_operation_if_asked,
    an_attempt_lapses_to_the_microsecond,
    a_page_goes_by_the_grace_it_is_asked_with,
    a_doubt_is_listed_until_somebody_takes_it_over,
    a_page_shows_records_in_full_but_for_the_answer,
    a_record_is_shown_as_it_was_reserved,
    an_absent_record_is_not_there_to_see,
    an_ended_attempt_that_is_renewed_stays_as_it_is,
    what_is_open_is_counted,
    a_doubt_counts_from_its_beginning,
);

impl Bench {
    pub(super) fn admin(&self) -> &dyn StoreAdmin {
        match self.store.admin() {
            Some(admin) => admin,
            None => panic!("a store that does not say that it lacks a side for operators has one"),
        }
    }

    pub(super) async fn page(&self, request: &Scan) -> Page {
        let page = done(self.admin().scan(request).await);
        let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
        assert!(page.records.len() <= limit, "more than the limit");
        page
    }

    /// Every record of a standing, by pages of so many.
    pub(super) async fn pages(&self, request: &Scan) -> Vec<RecordId> {
        let mut request = request.clone();
        let mut ids = Vec::new();
        loop {
            let page = self.page(&request).await;
            ids.extend(page.records.iter().map(|record| record.id));
            let Some(next) = page.next else {
                return ids;
            };
            assert!(request.after < Some(next), "the next page is no further on");
            request.after = Some(next);
        }
    }

    /// Every record of a standing.
    pub(super) async fn standing(&self, standing: Standing) -> Vec<RecordId> {
        self.pages(&scan(standing, 100)).await
    }

    pub(super) async fn see(&self, key: u8) -> Seen {
        match done(self.admin().get(&id(key)).await) {
            Some(seen) => seen,
            None => panic!("expected a record of key {key}"),
        }
    }

    pub(super) async fn settle(&self, request: &Settle) -> Written {
        done(self.admin().settle(request).await)
    }

    pub(super) async fn count(&self, finished: bool) -> Counts {
        let request = Count {
            grace_us: GRACE,
            finished,
        };
        done(self.admin().count(&request).await)
    }

    /// Wins a key and says that its outcome is not known.
    pub(super) async fn doubtful(&self, key: u8) -> Attempt {
        let attempt = self.take(key).await;
        let written = self
            .mark_unknown(attempt.holder, UnknownReason::Panicked)
            .await;
        assert_eq!(written, Written::Done);
        attempt
    }
}

pub(super) fn scan(standing: Standing, limit: u32) -> Scan {
    Scan {
        standing,
        operation: None,
        grace_us: GRACE,
        after: None,
        limit,
    }
}

pub(super) fn ids<const N: usize>(keys: [u8; N]) -> Vec<RecordId> {
    keys.map(id).to_vec()
}

const OPEN: [Standing; 3] = [Standing::Unknown, Standing::Lapsed, Standing::InProgress];

async fn an_empty_store_has_one_empty_page(b: &Bench) {
    for standing in OPEN {
        let page = b.page(&scan(standing, 1)).await;
        assert_eq!((page.records, page.next), (Vec::new(), None));
    }
    let counts = b.count(false).await;
    let nothing = Counts {
        now_us: counts.now_us,
        ..Counts::default()
    };
    assert_eq!(counts, nothing);
}

async fn pages_of_one_show_each_record_once_and_in_order(b: &Bench) {
    for key in [9, 3, 250, 0, 128] {
        b.doubtful(key).await;
        b.take(key + 1).await;
    }
    let unknown = b.pages(&scan(Standing::Unknown, 1)).await;
    assert_eq!(unknown, ids([0, 3, 9, 128, 250]));
    let running = b.pages(&scan(Standing::InProgress, 1)).await;
    assert_eq!(running, ids([1, 4, 10, 129, 251]));
    b.advance(LAPSE);
    let lapsed = b.pages(&scan(Standing::Lapsed, 1)).await;
    assert_eq!(lapsed, ids([1, 4, 10, 129, 251]));
}

async fn a_full_page_knows_whether_it_is_the_last(b: &Bench) {
    for key in 1..=4 {
        b.take(key).await;
    }
    let mut request = scan(Standing::InProgress, 2);
    let first = b.page(&request).await;
    assert_eq!(first.records.len(), 2);
    assert_eq!(first.next, Some(id(2)), "the last that it shows");
    request.after = first.next;
    let second = b.page(&request).await;
    assert_eq!(second.records.len(), 2);
    assert_eq!(second.next, None, "nothing is behind it");
    let all = b.page(&scan(Standing::InProgress, u32::MAX)).await;
    assert_eq!((all.records.len(), all.next), (4, None));
}

async fn a_page_starts_behind_any_id(b: &Bench) {
    for key in [2, 4, 6] {
        b.doubtful(key).await;
    }
    let behind = |key| Scan {
        after: Some(id(key)),
        ..scan(Standing::Unknown, 10)
    };
    assert_eq!(b.pages(&behind(0)).await, ids([2, 4, 6]));
    assert_eq!(b.pages(&behind(2)).await, ids([4, 6]), "not the one itself");
    assert_eq!(
        b.pages(&behind(3)).await,
        ids([4, 6]),
        "one that is not there"
    );
    assert_eq!(b.pages(&behind(6)).await, ids([]));
    assert_eq!(b.pages(&behind(255)).await, ids([]));
}

async fn a_page_shows_one_operation_if_asked(b: &Bench) {
    for (key, operation) in [(1, "shop.charge"), (2, "shop.refund"), (3, "shop.charge")] {
        b.win(&Reserve {
            operation: operation.to_owned(),
            ..b.request(key)
        })
        .await;
    }
    let of = |operation: &str, limit| Scan {
        operation: Some(operation.to_owned()),
        ..scan(Standing::InProgress, limit)
    };
    assert_eq!(b.pages(&of("shop.charge", 1)).await, ids([1, 3]));
    assert_eq!(b.pages(&of("shop.refund", 10)).await, ids([2]));
    for other in ["shop", "SHOP.CHARGE", "shop.charge ", "shop.%", ""] {
        assert_eq!(b.pages(&of(other, 10)).await, ids([]), "{other:?}");
    }
}

async fn an_attempt_lapses_to_the_microsecond(b: &Bench) {
    let attempt = b.take(1).await;
    b.advance(LEASE + GRACE);
    assert_eq!(b.standing(Standing::InProgress).await, ids([1]));
    assert_eq!(b.standing(Standing::Lapsed).await, ids([]));
    assert_eq!(
        (
            b.count(false).await.in_progress,
            b.count(false).await.lapsed
        ),
        (1, 0)
    );
    b.advance(1);
    assert_eq!(b.standing(Standing::InProgress).await, ids([]));
    assert_eq!(b.standing(Standing::Lapsed).await, ids([1]));
    assert_eq!(
        (
            b.count(false).await.in_progress,
            b.count(false).await.lapsed
        ),
        (0, 1)
    );
    assert!(b.renew(attempt.holder).await);
    assert_eq!(b.standing(Standing::InProgress).await, ids([1]));
    assert_eq!(b.standing(Standing::Lapsed).await, ids([]));
}

async fn a_page_goes_by_the_grace_it_is_asked_with(b: &Bench) {
    b.take(1).await;
    b.advance(LEASE + 1);
    let with = |standing, grace_us| Scan {
        grace_us,
        ..scan(standing, 10)
    };
    assert_eq!(b.pages(&with(Standing::Lapsed, 0)).await, ids([1]));
    assert_eq!(b.pages(&with(Standing::Lapsed, 1)).await, ids([]));
    assert_eq!(b.pages(&with(Standing::InProgress, 1)).await, ids([1]));
    for (grace_us, lapsed) in [(0, 1), (1, 0)] {
        let request = Count {
            grace_us,
            finished: false,
        };
        assert_eq!(done(b.admin().count(&request).await).lapsed, lapsed);
    }
}

async fn a_doubt_is_listed_until_somebody_takes_it_over(b: &Bench) {
    b.doubtful(1).await;
    b.take(2).await;
    b.advance(LAPSE);
    assert_eq!(b.standing(Standing::Unknown).await, ids([1]));
    assert_eq!(b.look(2).await, unknown(UnknownReason::Lapsed));
    assert_eq!(b.standing(Standing::Unknown).await, ids([1, 2]));
    let taker = b.win(&b.rerun(1)).await;
    assert_eq!(b.standing(Standing::Unknown).await, ids([2]));
    assert_eq!(b.standing(Standing::InProgress).await, ids([1]));
    assert_eq!(b.give_back(taker.holder).await, Written::Done);
    assert_eq!(b.standing(Standing::Unknown).await, ids([1, 2]));
}

async fn a_page_shows_records_in_full_but_for_the_answer(b: &Bench) {
    let first = b.win(&b.versioned(1, 1)).await;
    assert_eq!(b.answer(first.holder, &text(1, "a")).await, Written::Done);
    // While a newer version runs, the answer of the one before is kept.
    b.win(&b.versioned(1, 2)).await;
    let seen = b.see(1).await;
    assert_eq!(seen.record.answer, Some(text(1, "a")));
    let page = b.page(&scan(Standing::InProgress, 10)).await;
    let shown = Record {
        answer: None,
        ..seen.record
    };
    assert_eq!((page.now_us, page.records), (seen.now_us, vec![shown]));
}

async fn a_record_is_shown_as_it_was_reserved(b: &Bench) {
    let request = Reserve {
        operation: "shop.charge".to_owned(),
        label: Some(Label::new("order 7, 'größe' \"L\" \\ 🧦")),
        scope: Some([7; 32]),
        ..b.request(1)
    };
    let attempt = b.win(&request).await;
    b.advance(SECOND);
    let Seen { now_us, record } = b.see(1).await;
    assert_eq!(record.started_us, now_us - SECOND);
    assert_eq!(record.lease_until_us, Some(record.started_us + LEASE));
    assert_eq!(record.label, request.label);
    assert_eq!(record.scope, request.scope);
    assert_eq!(record.operation, request.operation);
    assert_eq!(record.fingerprint, request.fingerprint);
    assert_eq!(record.elements, request.elements);
    assert_eq!(record.claim, request.claim);
    assert_eq!((record.fence, record.attempt), (attempt.won.fence, 1));
    assert_eq!((record.state, record.answer), (State::InProgress, None));
}

async fn an_absent_record_is_not_there_to_see(b: &Bench) {
    b.take(1).await;
    assert_eq!(done(b.admin().get(&id(2)).await), None);
    assert_eq!(done(b.admin().audit(&id(2)).await), []);
}

async fn an_ended_attempt_that_is_renewed_stays_as_it_is(b: &Bench) {
    let answered = b.answered(1, &text(1, "a")).await;
    let marked = b.take(2).await;
    let reason = UnknownReason::Failed;
    assert_eq!(b.mark_unknown(marked.holder, reason).await, Written::Done);
    let released = b.take(3).await;
    assert_eq!(b.release(released.holder).await, Written::Done);
    for (key, attempt) in [(1, answered), (2, marked), (3, released)] {
        let before = b.see(key).await.record;
        assert!(!b.renew(attempt.holder).await);
        assert_eq!(b.see(key).await.record, before, "key {key}");
    }
}

async fn what_is_open_is_counted(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    let oldest = b.take(2).await;
    b.advance(SECOND);
    b.take(3).await;
    b.advance(LAPSE - SECOND);
    b.take(4).await;
    b.doubtful(5).await;
    b.advance(SECOND);
    b.doubtful(6).await;
    let open = |counts: &Counts| (counts.in_progress, counts.lapsed, counts.unknown);
    let counts = b.count(false).await;
    assert_eq!(open(&counts), (1, 2, 2));
    let started = counts.now_us - LAPSE - SECOND;
    assert_eq!(counts.oldest_started_us, Some(started));
    assert_eq!(counts.oldest_unknown_us, Some(counts.now_us - SECOND));
    assert_eq!(counts.finished, None);
    assert_eq!(b.answer(oldest.holder, &text(2, "a")).await, Written::Done);
    let counts = b.count(false).await;
    assert_eq!(open(&counts), (1, 1, 2));
    assert_eq!(counts.oldest_started_us, Some(started + SECOND));
}

async fn a_doubt_counts_from_its_beginning(b: &Bench) {
    b.doubtful(1).await;
    let since = b.count(false).await.now_us;
    for _ in 0..MAX_TAKEOVERS {
        b.advance(LAPSE);
        b.win(&b.rerun(1)).await;
    }
    assert_eq!(b.count(false).await.oldest_unknown_us, None, "it runs");
    b.advance(LAPSE);
    assert!(matches!(b.look(1).await, Reserved::Unknown { .. }));
    assert_eq!(b.count(false).await.oldest_unknown_us, Some(since));
}
