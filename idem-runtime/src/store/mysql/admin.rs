//! The side for operators.

use async_trait::async_trait;
use sqlx::mysql::MySqlConnection;
use sqlx::{Connection as _, Executor as _};

use super::error::{is_conflict, store_error};
use super::{MySqlStore, rows};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::Record;
use crate::store::sql::{behind, counts, damaged, page, to_read};
use crate::store::swap::{self, AuditedRows, Rows as _};
use crate::store::{Audited, Count, Counts, Page, Scan, Seen, Settle, StoreAdmin, Written};

impl MySqlStore {
    /// Asks for the store's time.
    async fn now_us(&self) -> Result<i64, StoreError> {
        let texts = &self.link.texts;
        let row = texts
            .query(&texts.statements.now)
            .bind(texts.clock_us())
            .fetch_one(&self.pool)
            .await
            .map_err(|error| store_error(&error))?;
        sqlx::Row::try_get(&row, 0).map_err(|_| damaged("time"))
    }

    async fn transact(
        &self,
        conn: &mut MySqlConnection,
        seen: &Record,
        next: &Record,
        entry: &Audited,
    ) -> Result<bool, sqlx::Error> {
        let texts = &self.link.texts;
        conn.execute("start transaction").await?;
        let swapped = texts.swap(seen, next).execute(&mut *conn).await?;
        if swapped.rows_affected() != 1 {
            return Ok(false);
        }
        texts
            .query(&texts.statements.note)
            .bind(next.id.as_bytes().as_slice())
            .bind(entry.at_us)
            .bind(entry.was.code())
            .bind(entry.fence)
            .bind(entry.became)
            .bind(entry.forced)
            .bind(entry.note.by())
            .bind(entry.note.why())
            .execute(&mut *conn)
            .await?;
        texts.end_steps(seen).execute(&mut *conn).await?;
        conn.execute("commit").await?;
        Ok(true)
    }
}

impl AuditedRows for MySqlStore {
    /// Two statements are a transaction, on a connection of its own: one of the
    /// pool must never be left in one. However this ends, closing it undoes
    /// what was not committed.
    async fn swap_audited(
        &self,
        seen: &Record,
        next: &Record,
        entry: &Audited,
    ) -> Result<bool, StoreError> {
        let options = self.pool.connect_options();
        let mut conn = MySqlConnection::connect_with(&options)
            .await
            .map_err(|error| store_error(&error))?;
        let swapped = self.transact(&mut conn, seen, next, entry).await;
        conn.close().await.ok();
        match swapped {
            Ok(swapped) => Ok(swapped),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(store_error(&error)),
        }
    }
}

#[async_trait]
impl StoreAdmin for MySqlStore {
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError> {
        // What changes after this look at the clock changes to a later time: it
        // still stands at this one.
        let now_us = self.now_us().await?;
        let texts = &self.link.texts;
        let lapsed_us = now_us.saturating_sub(request.grace_us);
        let (sql, at_us) = texts.statements.scan(request.standing, now_us, lapsed_us);
        let mut query = texts.query(&sql);
        if let Some(at_us) = at_us {
            query = query.bind(at_us);
        }
        let found = query
            .bind(behind(request))
            .bind(request.operation.as_deref())
            .bind(request.operation.as_deref())
            .bind(to_read(request))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| store_error(&error))?;
        let records = found.iter().map(rows::record).collect::<Result<_, _>>()?;
        Ok(page(request, now_us, records))
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError> {
        let looked = self.find(id).await?;
        let now_us = looked.now_us;
        Ok(looked.record.map(|record| Seen { now_us, record }))
    }

    async fn settle(&self, request: &Settle) -> Result<Written, StoreError> {
        swap::settle(self, request).await
    }

    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError> {
        let texts = &self.link.texts;
        let entries = texts
            .query(&texts.statements.audit)
            .bind(id.as_bytes().as_slice())
            .fetch_all(&self.pool)
            .await
            .map_err(|error| store_error(&error))?;
        entries.iter().map(rows::audited).collect()
    }

    async fn count(&self, request: &Count) -> Result<Counts, StoreError> {
        let now_us = self.now_us().await?;
        let texts = &self.link.texts;
        let lapsed_us = now_us.saturating_sub(request.grace_us);
        let open = texts
            .query(&texts.statements.count)
            .bind(lapsed_us)
            .bind(lapsed_us)
            .fetch_one(&self.pool)
            .await
            .map_err(|error| store_error(&error))?;
        let open = sqlx::FromRow::from_row(&open).map_err(|_| damaged("count"))?;
        if !request.finished {
            return Ok(counts(now_us, open, None));
        }
        let finished = texts
            .query(&texts.statements.count_finished)
            .fetch_one(&self.pool)
            .await
            .map_err(|error| store_error(&error))?;
        let finished = sqlx::Row::try_get(&finished, 0).map_err(|_| damaged("count"))?;
        Ok(counts(now_us, open, Some(finished)))
    }
}
