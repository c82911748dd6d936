//! Inside of the caller's transaction, on the caller's connection.

mod row;

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use super::error::Failure;
use super::{SqliteStore, error, rows, statements};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::sql::{Ended, damaged, write_elements};
use crate::store::transactional::{Entrance, Transactional, other_database, other_kind};
use crate::store::{Complete, Reserve, Reserved, Won, Written};
use crate::transaction::Session;
use crate::transition;

fn connection(session: Session<'_>) -> Result<&mut SqliteConnection, StoreError> {
    match session {
        Session::Sqlite(conn) => Ok(conn),
        _ => Err(other_kind()),
    }
}

impl Failure for sqlx::Error {
    fn code(&self) -> Option<i32> {
        self.as_database_error()?.code()?.parse().ok()
    }
}

/// Classifies an error of a statement on the caller's connection.
pub(crate) fn in_session(error: &sqlx::Error) -> StoreError {
    if error::is_busy(error) {
        return StoreError::new(
            StoreErrorKind::Transient,
            "the SQLite file is locked, or was changed since this transaction first read it; roll back, and begin with `begin_with(\"BEGIN IMMEDIATE\")`, which waits for its turn",
        )
        .with_code(error.code().map(|code| code.to_string()).unwrap_or_default());
    }
    if error::is_of_statement(error) {
        // It has not the tables of this store.
        tracing::debug!(target: "idem::store", error = %error, "SQLite error");
        return other_database();
    }
    error::store_error(error)
}

#[async_trait]
impl Transactional for SqliteStore {
    async fn reserve_in(
        &self,
        session: Session<'_>,
        instance: &[u8; 16],
        request: &Reserve,
    ) -> Result<Entrance, StoreError> {
        let conn = connection(session)?;
        let failed = |error: sqlx::Error| in_session(&error);
        let won: Option<i64> = sqlx::query_scalar(statements::RESERVE_IN)
            .bind(request.id.as_bytes().as_slice())
            .bind(request.operation.as_str())
            .bind(request.label.as_ref().map(crate::record::Label::as_str))
            .bind(request.scope.as_ref().map(<[u8; 32]>::as_slice))
            .bind(request.fingerprint.as_bytes().as_slice())
            .bind(write_elements(&request.elements))
            .bind(request.claim.as_bytes().as_slice())
            .bind(request.version.as_ref().map(|v| v.as_bytes().to_vec()))
            .bind(self.0.time.at_least(i64::MIN))
            .bind(instance.as_slice())
            .fetch_optional(&mut *conn)
            .await
            .map_err(failed)?;
        if let Some(fence) = won {
            // A fresh fence is the time, which others must not go behind.
            self.0.time.at_least(fence);
            return Ok(Entrance::Answered(Reserved::Won(Won {
                fence,
                attempt: 1,
                doubt: false,
                doubt_for_us: 0,
                resent: false,
            })));
        }
        // The insertion has taken the write lock: what stands there stays.
        let row = sqlx::query(statements::LOOK_IN)
            .bind(request.id.as_bytes().as_slice())
            .bind(instance.as_slice())
            .fetch_optional(&mut *conn)
            .await
            .map_err(failed)?;
        let row = row.ok_or_else(other_database)?;
        let stored: i64 = row.try_get("clock_us").map_err(|_| damaged("time"))?;
        let record = rows::record(&row)?;
        let now_us = self.0.time.at_least(stored);
        let decision = transition::reserve_in_transaction(Some(&record), request, now_us);
        if let Some(next) = &decision.write {
            row::write(next).execute(conn).await.map_err(failed)?;
        }
        Ok(Entrance::Answered(decision.reply))
    }

    async fn complete_in(
        &self,
        session: Session<'_>,
        request: &Complete,
    ) -> Result<Written, StoreError> {
        let conn = connection(session)?;
        let ended = Ended::of(&request.ending);
        let holder = &request.holder;
        let now_us = self.0.time.at_least(i64::MIN);
        let done = sqlx::query(statements::COMPLETE_IN)
            .bind(holder.id.as_bytes().as_slice())
            .bind(holder.claim.as_bytes().as_slice())
            .bind(holder.fence)
            .bind(ended.state)
            .bind(now_us)
            .bind(transition::expiry(now_us, request.ttl_us))
            .bind(ended.reason)
            .bind(ended.codec)
            .bind(ended.failed)
            .bind(ended.bytes)
            .bind(ended.digest)
            .execute(conn)
            .await
            .map_err(|error| in_session(&error))?;
        Ok(if done.rows_affected() == 1 {
            Written::Done
        } else {
            Written::Superseded
        })
    }
}
