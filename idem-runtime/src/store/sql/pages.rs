//! Pages and counts for operators.

use crate::record::Record;
use crate::store::{Counts, Page, Scan};

/// How many records to read for a page: one more tells whether it is the last.
pub(in crate::store) fn to_read(request: &Scan) -> i64 {
    i64::from(request.limit.max(1)) + 1
}

/// Makes a page of as many records as [`to_read`] said.
pub(in crate::store) fn page(request: &Scan, now_us: i64, mut records: Vec<Record>) -> Page {
    let limit = request.limit.max(1) as usize;
    let more = records.len() > limit;
    records.truncate(limit);
    Page {
        now_us,
        next: records.last().filter(|_| more).map(|record| record.id),
        records,
    }
}

/// The id that a page starts behind: every id is behind no bytes.
pub(in crate::store) fn behind(request: &Scan) -> Vec<u8> {
    request
        .after
        .map_or_else(Vec::new, |id| id.as_bytes().to_vec())
}

/// What is in progress, lapsed and unknown; when the oldest attempt was
/// reserved, and since when the oldest unknown outcome is in doubt.
pub(in crate::store) type Open = (i64, i64, i64, Option<i64>, Option<i64>);

/// Makes counts of what statements of that form have counted.
pub(in crate::store) fn counts(now_us: i64, open: Open, finished: Option<i64>) -> Counts {
    let (in_progress, lapsed, unknown, oldest_started_us, oldest_unknown_us) = open;
    Counts {
        now_us,
        in_progress: in_progress.unsigned_abs(),
        lapsed: lapsed.unsigned_abs(),
        unknown: unknown.unsigned_abs(),
        oldest_started_us,
        oldest_unknown_us,
        finished: finished.map(i64::unsigned_abs),
    }
}
