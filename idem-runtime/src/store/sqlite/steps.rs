//! The steps of a body.

use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::error::store_error;
use super::{SqliteStore, rows, statements};
use crate::error::StoreError;
use crate::store::sql::{damaged, fixed};
use crate::store::{Holder, RecordStep, Step, Written};
use crate::transition;

/// Keeps a step, inside of the writer's transaction.
pub(super) async fn record(
    conn: &mut SqliteConnection,
    request: &RecordStep,
    now_us: i64,
) -> Result<Result<Written, StoreError>, sqlx::Error> {
    let (holder, step) = (&request.holder, &request.step);
    let row = sqlx::query(statements::FIND)
        .bind(holder.id.as_bytes().as_slice())
        .fetch_optional(&mut *conn)
        .await?;
    let current = match row.as_ref().map(rows::record).transpose() {
        Ok(current) => current,
        Err(damaged) => return Ok(Err(damaged)),
    };
    let held = transition::holds_steps(current.as_ref(), holder);
    if held != Written::Done {
        return Ok(Ok(held));
    }
    let kept = sqlx::query(statements::STEP)
        .bind(holder.id.as_bytes().as_slice())
        .bind(step.label.as_str())
        .bind(holder.fence)
        .bind(step.position)
        .bind(step.basis.as_slice())
        .bind(step.codec.as_str())
        .bind(step.bytes.as_slice())
        .bind(step.digest.as_slice())
        .bind(now_us)
        .execute(conn)
        .await?;
    Ok(Ok(match kept.rows_affected() {
        0 => Written::AlreadyDone,
        _ => Written::Done,
    }))
}

impl SqliteStore {
    pub(super) async fn steps_of(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        let failed = |error: sqlx::Error| store_error(&error);
        let mut conn = self.0.readers.acquire().await.map_err(failed)?;
        let found = sqlx::query(statements::STEPS)
            .bind(holder.id.as_bytes().as_slice())
            .bind(holder.claim.as_bytes().as_slice())
            .bind(holder.fence)
            .fetch_all(&mut *conn)
            .await
            .map_err(failed)?;
        if found.is_empty() {
            return Ok(None);
        }
        let steps = found.iter().filter_map(|row| step(row).transpose());
        steps.collect::<Result<_, _>>().map(Some)
    }
}

/// Reads a step; none where a record has no steps.
fn step(row: &SqliteRow) -> Result<Option<Step>, StoreError> {
    let unreadable = |_| damaged("step");
    let Some(label) = row.try_get(0).map_err(unreadable)? else {
        return Ok(None);
    };
    Ok(Some(Step {
        label,
        position: row.try_get(1).map_err(unreadable)?,
        basis: fixed(row.try_get(2).map_err(unreadable)?, "step")?,
        codec: row.try_get(3).map_err(unreadable)?,
        bytes: row.try_get(4).map_err(unreadable)?,
        digest: fixed(row.try_get(5).map_err(unreadable)?, "step")?,
    }))
}
