//! What operators see of what has ended.

use super::admin::{ids, scan};
use super::bench::{Bench, TTL, text};
use crate::record::{Record, Standing, TombstoneReason};
use crate::store::{Capability, Seen, Written};

super::topic!(
    CASES,
    "admin",
    &[Capability::Admin, Capability::ListFinished],
    finished_records_are_listed_by_how_they_ended,
    answers_are_left_out_of_pages_and_shown_in_full,
    an_expired_record_is_in_no_page_and_still_to_see,
    pages_go_on_behind_expired_records,
    finished_records_are_counted_only_if_asked,
);

async fn ended(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    let buried = b.take(2).await;
    let written = b.bury(buried.holder, TombstoneReason::TooLarge).await;
    assert_eq!(written, Written::Done);
    let released = b.take(3).await;
    assert_eq!(b.release(released.holder).await, Written::Done);
}

const ENDED: [(Standing, u8); 3] = [
    (Standing::Completed, 1),
    (Standing::Tombstone, 2),
    (Standing::Released, 3),
];

async fn finished_records_are_listed_by_how_they_ended(b: &Bench) {
    ended(b).await;
    b.take(4).await;
    for (standing, key) in ENDED {
        assert_eq!(b.standing(standing).await, ids([key]), "{standing:?}");
    }
    for standing in [Standing::Unknown, Standing::Lapsed] {
        assert_eq!(b.standing(standing).await, ids([]), "{standing:?}");
    }
    assert_eq!(b.standing(Standing::InProgress).await, ids([4]));
}

async fn answers_are_left_out_of_pages_and_shown_in_full(b: &Bench) {
    b.answered(1, &text(1, "a")).await;
    let record = b.see(1).await.record;
    assert_eq!(record.answer, Some(text(1, "a")));
    let page = b.page(&scan(Standing::Completed, 1)).await;
    let shown = Record {
        answer: None,
        ..record
    };
    assert_eq!(page.records, [shown]);
}

async fn an_expired_record_is_in_no_page_and_still_to_see(b: &Bench) {
    ended(b).await;
    b.advance(TTL);
    for (standing, key) in ENDED {
        assert_eq!(
            b.standing(standing).await,
            ids([key]),
            "its last microsecond"
        );
    }
    b.advance(1);
    for (standing, key) in ENDED {
        assert_eq!(b.standing(standing).await, ids([]), "{standing:?}");
        let Seen { now_us, record } = b.see(key).await;
        assert_eq!(record.expires_us, Some(now_us - 1));
    }
}

async fn pages_go_on_behind_expired_records(b: &Bench) {
    for key in [1, 2, 4, 5, 7] {
        b.answered(key, &text(key, "a")).await;
    }
    b.advance(TTL + 1);
    for key in [3, 6, 8] {
        b.answered(key, &text(key, "a")).await;
    }
    for limit in [1, 2, 3, 10] {
        let shown = b.pages(&scan(Standing::Completed, limit)).await;
        assert_eq!(shown, ids([3, 6, 8]), "by {limit}");
    }
}

async fn finished_records_are_counted_only_if_asked(b: &Bench) {
    assert_eq!(b.count(true).await.finished, Some(0));
    ended(b).await;
    b.take(4).await;
    b.doubtful(5).await;
    assert_eq!(b.count(false).await.finished, None);
    assert_eq!(b.count(true).await.finished, Some(3));
    b.advance(TTL + 1);
    let counts = b.count(true).await;
    assert_eq!(counts.finished, Some(3), "until they are swept");
    assert_eq!(
        (counts.in_progress, counts.lapsed, counts.unknown),
        (0, 1, 1)
    );
}
