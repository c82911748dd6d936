//! `idem resolve`: what was found out about a record.

use std::io::Read as _;

use serde::de::IgnoredAny;

use super::release::release;
use crate::args::{Global, Resolve};
use crate::connect;
use crate::failure::Failure;
use crate::json::not_json;
use crate::settled::{Change, report};

const RESOLVED: Change = Change {
    word: "resolved",
    meaning: "later calls get this answer",
};

pub(crate) async fn run(global: &Global, args: &Resolve) -> Result<(), Failure> {
    let Some(done) = &args.done else {
        return release(global, &args.id, &args.note, args.ttl, args.force).await;
    };
    let answer = answer(done)?;
    let operator = connect::operator(global).await?;
    let seen = operator.find(&args.id).await?;
    let mut record = operator
        .admin
        .record(seen.record.id)
        .seen(seen.record.fence, seen.record.state);
    if let Some(ttl) = args.ttl {
        record = record.keep(ttl);
    }
    if args.force {
        record = record.force();
    }
    let settled = record
        .resolve_json(&answer, &args.note.by, &args.note.why)
        .await?;
    report(global, &seen.record.id, &args.note, RESOLVED, settled)
}

/// The text of the answer, without what is around it.
fn answer(done: &str) -> Result<String, Failure> {
    let mut text = done.to_owned();
    if done == "-" {
        text.clear();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|_| Failure::usage("standard input is no text"))?;
    }
    if let Err(error) = serde_json::from_str::<IgnoredAny>(&text) {
        return Err(Failure::usage(format!("--done: {}", not_json(&error))));
    }
    Ok(text.trim().to_owned())
}
