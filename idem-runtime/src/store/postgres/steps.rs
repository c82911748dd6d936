//! The steps of a body.

use sqlx::Row as _;
use sqlx::postgres::PgRow;

use super::PostgresStore;
use super::error::{is_conflict, store_error};
use crate::error::StoreError;
use crate::store::sql::{damaged, fixed};
use crate::store::swap::{self, Rows as _, Tries};
use crate::store::{Holder, RecordStep, Step, Written};
use crate::transition;

impl PostgresStore {
    pub(super) async fn keep_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        let (holder, step) = (&request.holder, &request.step);
        let mut tries = Tries::new();
        while tries.again().await {
            let query = self
                .link
                .texts
                .query(&self.link.texts.statements.step)
                .bind(holder.id.as_bytes().as_slice())
                .bind(holder.claim.as_bytes().as_slice())
                .bind(holder.fence)
                .bind(step.label.as_str())
                .bind(step.position)
                .bind(step.basis.as_slice())
                .bind(step.codec.as_str())
                .bind(step.bytes.as_slice())
                .bind(step.digest.as_slice())
                .bind(self.link.texts.clock_us());
            let row = match self.link.connections.fetch_one(query).await {
                Ok(row) => row,
                Err(error) if is_conflict(&error) => continue,
                Err(error) => return Err(store_error(&error)),
            };
            let get = |at| row.try_get::<bool, _>(at).map_err(|_| damaged("step"));
            match (get(0)?, get(1)?) {
                (true, true) => return Ok(Written::Done),
                (true, false) => return Ok(Written::AlreadyDone),
                (false, _) => {}
            }
            let looked = self.find(&holder.id).await?;
            let held = transition::holds_steps(looked.record.as_ref(), holder);
            if held != Written::Done {
                return Ok(held);
            }
        }
        Err(swap::in_the_way())
    }

    pub(super) async fn steps_of(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        let query = self
            .link
            .texts
            .query(&self.link.texts.statements.steps)
            .bind(holder.id.as_bytes().as_slice())
            .bind(holder.claim.as_bytes().as_slice())
            .bind(holder.fence);
        let found = self.link.connections.fetch_all(query).await;
        let found = found.map_err(|error| store_error(&error))?;
        if found.is_empty() {
            return Ok(None);
        }
        let steps = found.iter().filter_map(|row| step(row).transpose());
        steps.collect::<Result<_, _>>().map(Some)
    }
}

/// Reads a step; none where a record has no steps.
fn step(row: &PgRow) -> Result<Option<Step>, StoreError> {
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
