//! The connection of the renewal thread: a pool of one, of its own.

use std::collections::HashSet;

use async_trait::async_trait;
use sqlx::Row as _;
use sqlx::postgres::PgPoolOptions;

use super::PostgresStore;
use super::error::{only_reads, store_error};
use crate::error::StoreError;
use crate::store::connections::Connections;
use crate::store::swap::{self, Rows as _};
use crate::store::{GiveBack, Lease, MarkUnknown, Renewer, Store as _, Written};
use crate::transition;

pub(super) struct PostgresRenewer(PostgresStore);

impl PostgresRenewer {
    /// Connects as the store's pool does. Statements name the schema, so the
    /// session needs nothing else.
    pub(super) async fn open(store: &PostgresStore) -> Result<Self, StoreError> {
        let options = (*store.pool.connect_options()).clone();
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options)
            .await
            .map_err(|error| store_error(&error))?;
        let connections = Connections::keeping(pool.clone(), 1, only_reads);
        let texts = std::sync::Arc::clone(&store.link.texts);
        Ok(Self(PostgresStore::on(pool, connections, texts)))
    }
}

#[async_trait]
impl Renewer for PostgresRenewer {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        let bytes = |lease: &Lease| lease.holder.id.as_bytes().to_vec();
        let ids: Vec<_> = leases.iter().map(bytes).collect();
        let claims: Vec<_> = leases
            .iter()
            .map(|lease| lease.holder.claim.as_bytes().to_vec())
            .collect();
        let fences: Vec<_> = leases.iter().map(|lease| lease.holder.fence).collect();
        let lengths: Vec<_> = leases.iter().map(|lease| lease.lease_us).collect();
        let texts = &self.0.link.texts;
        let query = texts
            .query(&texts.statements.renew)
            .bind(&ids)
            .bind(&claims)
            .bind(&fences)
            .bind(&lengths)
            .bind(texts.clock_us());
        let rows = self.0.link.connections.fetch_all(query).await;
        let rows = rows.map_err(|error| store_error(&error))?;
        let held: HashSet<Vec<u8>> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
        // The same record may be in a batch once with its holder and once with
        // one that was superseded.
        let mut renewed = Vec::with_capacity(leases.len());
        for (lease, id) in leases.iter().zip(&ids) {
            let twice = ids.iter().filter(|other| *other == id).count() > 1;
            renewed.push(held.contains(id) && (!twice || self.is_held(lease).await?));
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

impl PostgresRenewer {
    async fn is_held(&self, lease: &Lease) -> Result<bool, StoreError> {
        let found = self.0.find(&lease.holder.id).await?;
        Ok(transition::renew(found.record.as_ref(), lease, found.now_us).reply)
    }
}
