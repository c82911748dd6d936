//! The connection of the renewal thread, on a thread of its own: that of the
//! engine keeps its timeouts while the file is locked.

use async_trait::async_trait;
use rusqlite::Connection;

use super::connection::{begin, execute};
use super::error::store_error;
use super::threads::Threads;
use super::time::StoreTime;
use super::writer::step;
use super::{gone, statements};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::Record;
use crate::store::{GiveBack, Lease, MarkUnknown, Renewer, Written};
use crate::transition::{self, Decision};

pub(super) struct SqliteRenewer {
    thread: Threads,
    time: StoreTime,
}

impl SqliteRenewer {
    /// Opens the connection of a thread.
    pub(super) async fn open(thread: Threads, time: StoreTime) -> Result<Self, StoreError> {
        thread.run(|_| Ok(())).await?;
        Ok(Self { thread, time })
    }

    /// Decides about several records in one transaction. The inner errors are
    /// those of single records.
    async fn transact<Q, T>(
        &mut self,
        requests: Vec<Q>,
        id: impl Fn(&Q) -> &RecordId + Send + 'static,
        decide: impl Fn(Option<&Record>, &Q, i64) -> Decision<T> + Send + 'static,
    ) -> Result<Vec<Result<T, StoreError>>, StoreError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        let time = self.time.clone();
        let ran = self.thread.run_while_wanted(move |conn, wanted| {
            begin(conn)?;
            let decided = if wanted() {
                decide_all(conn, &time, &requests, id, decide)
                    .map_err(|error| store_error(&error).ambiguous())
            } else {
                // Whoever waited for the lock in vain has been told so.
                Err(gone())
            };
            if decided.is_err() {
                execute(conn, statements::ROLLBACK).ok();
            }
            decided
        });
        ran.await
    }

    async fn one<Q, T>(
        &mut self,
        request: Q,
        id: impl Fn(&Q) -> &RecordId + Send + 'static,
        decide: impl Fn(Option<&Record>, &Q, i64) -> Decision<T> + Send + 'static,
    ) -> Result<T, StoreError>
    where
        Q: Send + 'static,
        T: Send + 'static,
    {
        let replies = self.transact(vec![request], id, decide).await?;
        replies.into_iter().next().ok_or_else(gone)?
    }
}

fn decide_all<Q, T>(
    conn: &Connection,
    time: &StoreTime,
    requests: &[Q],
    id: impl Fn(&Q) -> &RecordId,
    decide: impl Fn(Option<&Record>, &Q, i64) -> Decision<T>,
) -> rusqlite::Result<Vec<Result<T, StoreError>>> {
    let now_us = time.in_transaction(conn)?;
    let mut replies = Vec::with_capacity(requests.len());
    for request in requests {
        let decide = |current: Option<&Record>| decide(current, request, now_us);
        replies.push(step(conn, id(request), decide)?);
    }
    execute(conn, statements::COMMIT)?;
    Ok(replies)
}

#[async_trait]
impl Renewer for SqliteRenewer {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        let held = self
            .transact(leases.to_vec(), |lease| &lease.holder.id, transition::renew)
            .await?;
        // A row that cannot be read is held by nobody, and must not fail the
        // others: their leases are renewed.
        Ok(held.into_iter().map(|held| held.unwrap_or(false)).collect())
    }

    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.one(
            request.clone(),
            |request| &request.holder.id,
            transition::mark_unknown,
        )
        .await
    }

    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError> {
        self.one(
            request.clone(),
            |request| &request.id,
            transition::give_back,
        )
        .await
    }
}
