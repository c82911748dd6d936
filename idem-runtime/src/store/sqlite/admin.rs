//! The side for operators: looks on a reading connection, and one job of the
//! writer.

use async_trait::async_trait;
use rusqlite::Connection;

use super::error::store_error;
use super::jobs::Op;
use super::{SqliteStore, rows, statements};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::store::sql::{behind, counts, page, to_read};
use crate::store::{Audited, Count, Counts, Page, Scan, Seen, Settle, StoreAdmin, Written};

impl SqliteStore {
    /// Reads on a reading connection, with the store's time.
    pub(super) async fn read<T, F>(&self, look: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, i64) -> Result<T, StoreError> + Send + 'static,
    {
        let time = self.0.time.clone();
        let reading = self.0.readers.run(move |conn| {
            let now_us = time.stored(conn).map_err(|error| store_error(&error))?;
            look(conn, now_us)
        });
        reading.await
    }
}

#[async_trait]
impl StoreAdmin for SqliteStore {
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError> {
        let request = request.clone();
        self.read(move |conn, now_us| {
            let values = (
                now_us,
                now_us.saturating_sub(request.grace_us),
                behind(&request),
                request.operation.as_deref(),
                to_read(&request),
            );
            let statement = statements::scan(request.standing);
            let records = rows::all(conn, statement, values, |row| rows::record(row))?;
            Ok(page(&request, now_us, records))
        })
        .await
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError> {
        let id = *id;
        self.read(move |conn, now_us| {
            let found = rows::find(conn, &id).map_err(|error| store_error(&error))?;
            Ok(found?.map(|record| Seen { now_us, record }))
        })
        .await
    }

    async fn settle(&self, request: &Settle) -> Result<Written, StoreError> {
        self.write(Op::Settle(request.clone())).await
    }

    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError> {
        let id = *id;
        self.read(move |conn, _| {
            let id = [id.as_bytes().as_slice()];
            rows::all(conn, statements::AUDIT, id, rows::audited)
        })
        .await
    }

    async fn count(&self, request: &Count) -> Result<Counts, StoreError> {
        let Count { grace_us, finished } = *request;
        self.read(move |conn, now_us| {
            let failed = |error: rusqlite::Error| store_error(&error);
            let before_us = now_us.saturating_sub(grace_us);
            let open = conn
                .query_row(statements::COUNT, [before_us], |row| row.try_into())
                .map_err(failed)?;
            let finished = finished
                .then(|| conn.query_row(statements::COUNT_FINISHED, (), |row| row.get(0)))
                .transpose()
                .map_err(failed)?;
            Ok(counts(now_us, open, finished))
        })
        .await
    }
}
