//! How a change by hand ended, as `resolve`, `release` and `forget` say it.

use idem::admin::Settled;
use idem::identity::RecordId;
use idem::record::Standing;
use idem::store::Seen;
use serde_json::json;

use crate::args::{Global, Note};
use crate::connect::Operator;
use crate::failure::Failure;
use crate::output::{plain, print, print_json};

/// What was made of a record, in one word, and what that means.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) word: &'static str,
    pub(crate) meaning: &'static str,
}

pub(crate) const RELEASED: Change = Change {
    word: "released",
    meaning: "the next call runs",
};

/// Refuses to let the work of a record be done again, unless it is forced.
pub(crate) fn refuse_done(
    operator: &Operator,
    seen: &Seen,
    forgets: bool,
    force: bool,
) -> Result<(), Failure> {
    if force {
        return Ok(());
    }
    let record = &seen.record;
    let standing = record.standing(seen.now_us, operator.grace_us);
    if matches!(standing, Some(Standing::Completed | Standing::Tombstone)) {
        return Err(Failure::refused(
            "its work is done, and the next call would do it once more: add --force if that is meant",
        ));
    }
    // It outlives its answer, and stands beside a newer version's attempt.
    if forgets && (record.version_applied.is_some() || record.version_recorded.is_some()) {
        return Err(Failure::refused(
            "it holds a version that was recorded, and older ones would no longer be stale but run: add --force if that is meant",
        ));
    }
    Ok(())
}

/// Says how it ended.
pub(crate) fn report(
    global: &Global,
    id: &RecordId,
    note: &Note,
    change: Change,
    settled: Settled,
) -> Result<(), Failure> {
    match settled {
        Settled::Done if global.json => print_json(&json!({
            "id": id.to_hex(),
            "settled": change.word,
            "by": note.by.trim(),
            "why": note.why.trim(),
        })),
        Settled::Done => print(&format!(
            "{id} {} by {}: {}\n",
            change.word,
            plain(note.by.trim()),
            change.meaning
        )),
        Settled::Gone => Err(Failure::nothing("it is gone: it has expired, or was swept")),
        Settled::Running => Err(Failure::refused(
            "its attempt holds its lease, so that its body may be at work: wait, or add --force; what the body does then happens all the same, and its end is refused",
        )),
        Settled::Ended => Err(Failure::refused(
            "it has its answer, or is released already: there is nothing to settle; `idem forget` makes its key as new",
        )),
        _ => Err(Failure::refused(format!(
            "it has changed meanwhile: look again with `idem show {id}`"
        ))),
    }
}
