//! The connection of the renewal thread, of its own.

use super::RedisStore;
use super::together::together;
use crate::error::StoreError;
use crate::store::swap;
use crate::store::{GiveBack, Lease, MarkUnknown, Renewer, Store as _, Written};
use crate::sync::Arc;
use crate::transition;
use async_trait::async_trait;

/// Renewals that are under way at once: they share packets and flushes.
const AT_ONCE: usize = 128;

pub(super) struct RedisRenewer(RedisStore);

impl RedisRenewer {
    pub(super) async fn open(store: &RedisStore) -> Result<Self, StoreError> {
        Ok(Self(RedisStore {
            connection: store.shared.source.connect().await?,
            shared: Arc::clone(&store.shared),
        }))
    }
}

#[async_trait]
impl Renewer for RedisRenewer {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        let mut order: Vec<usize> = (0..leases.len()).collect();
        order.sort_by_key(|&at| leases[at].holder.id);
        let mut held = vec![false; leases.len()];
        for some in order.chunks(AT_ONCE) {
            // Each by itself: what a pipeline holds would have to be in one slot
            // of a cluster.
            let renewals = some.iter().map(|&at| {
                let (store, lease) = (self.0.clone(), leases[at]);
                async move { store.extend(&lease).await }
            });
            for (&at, renewed) in some.iter().zip(together(renewals).await?) {
                held[at] = renewed;
            }
        }
        Ok(held)
    }

    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.0.mark_unknown(request).await
    }

    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError> {
        swap::step(&self.0.ends(), &request.id, |current, now_us| {
            transition::give_back(current, request, now_us)
        })
        .await
    }
}
