//! `idem forget`: as if the key had never been used.

use crate::args::{Forget, Global};
use crate::connect;
use crate::failure::Failure;
use crate::settled::{Change, refuse_done, report};

const FORGOTTEN: Change = Change {
    word: "forgotten",
    meaning: "the next call runs, as if its key were new",
};

pub(crate) async fn run(global: &Global, args: &Forget) -> Result<(), Failure> {
    let operator = connect::operator(global).await?;
    let seen = operator.find(&args.id).await?;
    refuse_done(&operator, &seen, true, args.force)?;
    let mut record = operator
        .admin
        .record(seen.record.id)
        .seen(seen.record.fence, seen.record.state);
    if args.force {
        record = record.force();
    }
    let settled = record.forget(&args.note.by, &args.note.why).await?;
    report(global, &seen.record.id, &args.note, FORGOTTEN, settled)
}
