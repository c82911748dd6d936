//! The connection of the renewal thread.

use async_trait::async_trait;
use sqlx::Executor as _;
use sqlx::sqlite::SqliteConnection;

use super::error::store_error;
use super::time::StoreTime;
use super::writer::step;
use super::{schema, statements};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::Record;
use crate::store::{GiveBack, Lease, MarkUnknown, Renewer, Written};
use crate::transition::{self, Decision};

pub(super) struct SqliteRenewer {
    pub(super) conn: SqliteConnection,
    pub(super) time: StoreTime,
}

impl SqliteRenewer {
    /// Decides about several records in one transaction. The inner errors are
    /// those of single records.
    async fn transact<Q, T>(
        &mut self,
        requests: &[Q],
        id: impl Fn(&Q) -> &RecordId,
        decide: impl Fn(Option<&Record>, &Q, i64) -> Decision<T>,
    ) -> Result<Vec<Result<T, StoreError>>, StoreError> {
        let conn = &mut self.conn;
        schema::begin(conn).await?;
        let mut replies = Vec::with_capacity(requests.len());
        let ran = async {
            let now_us = self.time.in_transaction(conn).await?;
            for request in requests {
                let decide = |current: Option<&Record>| decide(current, request, now_us);
                replies.push(step(conn, id(request), decide).await?);
            }
            conn.execute(statements::COMMIT).await.map(drop)
        }
        .await;
        if let Err(error) = ran {
            conn.execute(statements::ROLLBACK).await.ok();
            return Err(store_error(&error).ambiguous());
        }
        Ok(replies)
    }

    async fn one<Q, T>(
        &mut self,
        request: &Q,
        id: impl Fn(&Q) -> &RecordId,
        decide: impl Fn(Option<&Record>, &Q, i64) -> Decision<T>,
    ) -> Result<T, StoreError> {
        let replies = self
            .transact(std::slice::from_ref(request), id, decide)
            .await?;
        replies.into_iter().next().ok_or_else(super::writer::gone)?
    }
}

#[async_trait]
impl Renewer for SqliteRenewer {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        let held = self
            .transact(leases, |lease| &lease.holder.id, transition::renew)
            .await?;
        // A row that cannot be read is held by nobody, and must not fail the
        // others: their leases are renewed.
        Ok(held.into_iter().map(|held| held.unwrap_or(false)).collect())
    }

    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.one(
            request,
            |request| &request.holder.id,
            transition::mark_unknown,
        )
        .await
    }

    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError> {
        self.one(request, |request| &request.id, transition::give_back)
            .await
    }
}
