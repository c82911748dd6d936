//! Reservations that change nothing: a replay, a running attempt.

use rusqlite::Connection;

use super::error::store_error;
use super::jobs::{Done, Op};
use super::time::StoreTime;
use super::{SqliteStore, gone, rows};
use crate::error::StoreError;
use crate::store::{Reserve, Reserved};
use crate::transition;

impl SqliteStore {
    /// Reserves, without the write lock if nothing changes. A writer that has
    /// nothing to do looks by itself, and goes on if it must; while it writes,
    /// or waits to, a reading connection looks.
    pub(super) async fn look_and_reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        let jobs = &self.0.jobs;
        let done = match jobs.ask_if_idle(|| Op::Look(request.clone())).await {
            Some(done) => done?,
            None => match self.look(request).await? {
                Some(reserved) => return Ok(reserved),
                None => jobs.ask(Op::Reserve(request.clone())).await?,
            },
        };
        match done {
            Done::Reserved(reserved) => Ok(reserved),
            _ => Err(gone()),
        }
    }

    async fn look(&self, request: &Reserve) -> Result<Option<Reserved>, StoreError> {
        let (request, time) = (request.clone(), self.0.time.clone());
        let looking = self.0.readers.run(move |conn| look(conn, &time, &request));
        looking.await
    }
}

/// Answers a reservation that changes nothing; none if it needs a transaction.
pub(super) fn look(
    conn: &Connection,
    time: &StoreTime,
    request: &Reserve,
) -> Result<Option<Reserved>, StoreError> {
    let found = rows::find(conn, &request.id).map_err(|error| store_error(&error))?;
    let Some(record) = found? else {
        return Ok(None);
    };
    // Not the stored time: a clock that stepped back makes this say "recorded"
    // or "running" a little longer, which runs nothing. Whatever needs a write
    // is decided again in a transaction.
    let now_us = time.at_least(i64::MIN);
    let decision = transition::reserve(Some(&record), request, now_us);
    Ok(decision.write.is_none().then_some(decision.reply))
}
