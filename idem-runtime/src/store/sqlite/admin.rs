//! The side for operators: looks on a reading connection, and one job of the
//! writer.

use async_trait::async_trait;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::Sqlite;

use super::error::store_error;
use super::writer::Op;
use super::{SqliteStore, rows, statements};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::store::sql::{behind, counts, page, to_read};
use crate::store::{Audited, Count, Counts, Page, Scan, Seen, Settle, StoreAdmin, Written};

impl SqliteStore {
    /// Returns a reading connection and the store's time.
    pub(super) async fn reader(&self) -> Result<(PoolConnection<Sqlite>, i64), StoreError> {
        let mut conn = self
            .0
            .readers
            .acquire()
            .await
            .map_err(|error| store_error(&error))?;
        let stored: Option<i64> = sqlx::query_scalar(statements::CLOCK)
            .fetch_optional(&mut *conn)
            .await
            .map_err(|error| store_error(&error))?;
        Ok((conn, self.0.time.at_least(stored.unwrap_or(i64::MIN))))
    }
}

#[async_trait]
impl StoreAdmin for SqliteStore {
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError> {
        let (mut conn, now_us) = self.reader().await?;
        let found = sqlx::query(statements::scan(request.standing))
            .bind(now_us)
            .bind(now_us.saturating_sub(request.grace_us))
            .bind(behind(request))
            .bind(request.operation.as_deref())
            .bind(to_read(request))
            .fetch_all(&mut *conn)
            .await
            .map_err(|error| store_error(&error))?;
        let records = found.iter().map(rows::record).collect::<Result<_, _>>()?;
        Ok(page(request, now_us, records))
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError> {
        let (mut conn, now_us) = self.reader().await?;
        let row = sqlx::query(statements::FIND)
            .bind(id.as_bytes().as_slice())
            .fetch_optional(&mut *conn)
            .await
            .map_err(|error| store_error(&error))?;
        let record = row.as_ref().map(rows::record).transpose()?;
        Ok(record.map(|record| Seen { now_us, record }))
    }

    async fn settle(&self, request: &Settle) -> Result<Written, StoreError> {
        self.write(Op::Settle(request.clone())).await
    }

    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError> {
        let (mut conn, _) = self.reader().await?;
        let entries = sqlx::query(statements::AUDIT)
            .bind(id.as_bytes().as_slice())
            .fetch_all(&mut *conn)
            .await
            .map_err(|error| store_error(&error))?;
        entries.iter().map(rows::audited).collect()
    }

    async fn count(&self, request: &Count) -> Result<Counts, StoreError> {
        let (mut conn, now_us) = self.reader().await?;
        let open = sqlx::query_as(statements::COUNT)
            .bind(now_us.saturating_sub(request.grace_us))
            .fetch_one(&mut *conn)
            .await
            .map_err(|error| store_error(&error))?;
        let finished = if request.finished {
            let all = sqlx::query_scalar(statements::COUNT_FINISHED);
            Some(
                all.fetch_one(&mut *conn)
                    .await
                    .map_err(|error| store_error(&error))?,
            )
        } else {
            None
        };
        Ok(counts(now_us, open, finished))
    }
}
