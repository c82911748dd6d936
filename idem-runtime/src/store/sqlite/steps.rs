//! The steps of a body.

use rusqlite::Connection;

use super::rows::{self, Columns as _};
use super::{SqliteStore, statements};
use crate::error::StoreError;
use crate::store::{Holder, RecordStep, Step, Written};
use crate::transition;

/// Keeps a step, inside of the writer's transaction.
pub(super) fn record(
    conn: &Connection,
    request: &RecordStep,
    now_us: i64,
) -> rusqlite::Result<Result<Written, StoreError>> {
    let (holder, step) = (&request.holder, &request.step);
    let current = match rows::find(conn, &holder.id)? {
        Ok(current) => current,
        Err(damaged) => return Ok(Err(damaged)),
    };
    let held = transition::holds_steps(current.as_ref(), holder);
    if held != Written::Done {
        return Ok(Ok(held));
    }
    let kept = conn.prepare_cached(statements::STEP)?.execute((
        holder.id.as_bytes().as_slice(),
        step.label.as_str(),
        holder.fence,
        step.position,
        step.basis.as_slice(),
        step.codec.as_str(),
        step.bytes.as_slice(),
        step.digest.as_slice(),
        now_us,
    ))?;
    Ok(Ok(match kept {
        0 => Written::AlreadyDone,
        _ => Written::Done,
    }))
}

impl SqliteStore {
    pub(super) async fn steps_of(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        let holder = *holder;
        let reading = self.0.readers.run(move |conn| {
            let values = (
                holder.id.as_bytes().as_slice(),
                holder.claim.as_bytes().as_slice(),
                holder.fence,
            );
            rows::all(conn, statements::STEPS, values, step)
        });
        let found = reading.await?;
        if found.is_empty() {
            return Ok(None);
        }
        Ok(Some(found.into_iter().flatten().collect()))
    }
}

/// Reads a step; none where a record has no steps.
fn step(row: &rusqlite::Row<'_>) -> Result<Option<Step>, StoreError> {
    let Some(label) = row.column(0, "step")? else {
        return Ok(None);
    };
    Ok(Some(Step {
        label,
        position: row.column(1, "step")?,
        basis: row.column(2, "step")?,
        codec: row.column(3, "step")?,
        bytes: row.column(4, "step")?,
        digest: row.column(5, "step")?,
    }))
}
