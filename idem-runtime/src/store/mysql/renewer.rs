//! The connection of the renewal thread: a pool of one, of its own.

use std::collections::HashSet;

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::mysql::{MySql, MySqlArguments};
use sqlx::query::Query;

use super::error::{only_reads, store_error};
use super::{MySqlStore, own_sessions};
use crate::error::StoreError;
use crate::store::connections::Connections;
use crate::store::swap;
use crate::store::{GiveBack, Holder, Lease, MarkUnknown, Renewer, Store as _, Written};
use crate::transition;

/// The most leases in one statement.
const BATCH: usize = 200;

pub(super) struct MySqlRenewer(MySqlStore);

impl MySqlRenewer {
    /// Connects as the store's pool does. Statements name the tables, so the
    /// session needs nothing else.
    pub(super) async fn open(store: &MySqlStore) -> Result<Self, StoreError> {
        let options = (*store.pool.connect_options()).clone();
        let pool = own_sessions()
            .max_connections(1)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options)
            .await
            .map_err(|error| store_error(&error))?;
        let connections = Connections::keeping(pool.clone(), 1, only_reads);
        let texts = std::sync::Arc::clone(&store.link.texts);
        Ok(Self(MySqlStore::on(pool, connections, texts)))
    }
}

#[async_trait]
impl Renewer for MySqlRenewer {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        let mut renewed = Vec::with_capacity(leases.len());
        for batch in leases.chunks(BATCH) {
            renewed.extend(self.renew_batch(batch).await?);
        }
        Ok(renewed)
    }

    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.0.mark_unknown(request).await
    }

    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError> {
        swap::step(&self.0, &request.id, |current, now_us| {
            transition::give_back(current, request, now_us)
        })
        .await
    }
}

impl MySqlRenewer {
    /// Renews by one statement, and asks by another who was held: a count of
    /// rows would not say which.
    async fn renew_batch(&self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        let failed = |error: sqlx::Error| store_error(&error);
        let (store, texts) = (&self.0, &self.0.link.texts);
        // In the order of their ids, so that two batches cannot block each other.
        let mut sorted: Vec<_> = leases.iter().collect();
        sorted.sort_by_key(|lease| lease.holder.id);
        let (renew, held) = texts.statements.renewal(sorted.len());
        let mut query = texts.query(&renew).persistent(false).bind(texts.clock_us());
        for lease in &sorted {
            query = query
                .bind(lease.holder.id.as_bytes().as_slice())
                .bind(lease.lease_us);
        }
        let query = bind_holders(query, &sorted);
        store
            .link
            .connections
            .execute(query)
            .await
            .map_err(failed)?;
        let query = bind_holders(texts.query(&held).persistent(false), &sorted);
        let rows = store
            .link
            .connections
            .fetch_all(query)
            .await
            .map_err(failed)?;
        let held: HashSet<(Vec<u8>, Vec<u8>, i64)> = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))
            .collect::<Result<_, sqlx::Error>>()
            .map_err(failed)?;
        let is_held = |lease: &Lease| {
            let Holder { id, claim, fence } = &lease.holder;
            held.contains(&(id.as_bytes().to_vec(), claim.as_bytes().to_vec(), *fence))
        };
        Ok(leases.iter().map(is_held).collect())
    }
}

fn bind_holders<'q>(
    mut query: Query<'q, MySql, MySqlArguments>,
    leases: &[&'q Lease],
) -> Query<'q, MySql, MySqlArguments> {
    for lease in leases {
        query = query
            .bind(lease.holder.id.as_bytes().as_slice())
            .bind(lease.holder.claim.as_bytes().as_slice())
            .bind(lease.holder.fence);
    }
    query
}
