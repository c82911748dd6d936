//! `idem release`: nothing happened, so the next call runs.

use idem::Ttl;

use crate::args::{Global, Note, Release};
use crate::connect;
use crate::failure::Failure;
use crate::settled::{RELEASED, refuse_done, report};

pub(crate) async fn run(global: &Global, args: &Release) -> Result<(), Failure> {
    release(global, &args.id, &args.note, args.ttl, args.force).await
}

/// Also `idem resolve --not-done`.
pub(super) async fn release(
    global: &Global,
    id: &str,
    note: &Note,
    ttl: Option<Ttl>,
    force: bool,
) -> Result<(), Failure> {
    let operator = connect::operator(global).await?;
    let seen = operator.find(id).await?;
    let mut record = operator
        .admin
        .record(seen.record.id)
        .seen(seen.record.fence, seen.record.state);
    if seen.record.state == idem::record::State::Tombstone {
        refuse_done(&operator, &seen, false, force)?;
    }
    if let Some(ttl) = ttl {
        record = record.keep(ttl);
    }
    if force {
        record = record.force();
    }
    let settled = record.release(&note.by, &note.why).await?;
    report(global, &seen.record.id, note, RELEASED, settled)
}
