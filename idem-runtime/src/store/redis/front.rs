//! The front of a tiered store: entries with an expiry, beside no records.

use std::time::Duration;

use async_trait::async_trait;

use super::scripts::{BLOCK, CLEAR, GET, PUT, Script};
use super::{RedisStore, number};
use crate::error::StoreError;
use crate::store::tiered::{Front, Kind};

/// For a [`TieredStore`](crate::store::TieredStore). A server that is only a
/// front may evict, flush nothing to disk and fail over: what it loses is asked
/// of the store behind.
#[async_trait]
impl Front for RedisStore {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.run(&GET, &[self.shared.keys.front(key)], &[""; 0])
            .await
    }

    async fn fill(&self, key: &str, entry: &[u8], ttl: Duration) -> Result<(), StoreError> {
        self.put(&PUT, key, entry, ttl, &[Kind::Block.byte()]).await
    }

    async fn hint(&self, key: &str, entry: &[u8], ttl: Duration) -> Result<(), StoreError> {
        let stay = [Kind::Answer.byte(), Kind::Block.byte()];
        self.put(&PUT, key, entry, ttl, &stay).await
    }

    async fn clear_hint(&self, key: &str) -> Result<(), StoreError> {
        let keys = [self.shared.keys.front(key)];
        let _: bool = self.run(&CLEAR, &keys, &[vec![Kind::Hint.byte()]]).await?;
        Ok(())
    }

    async fn block(&self, key: &str, ttl: Duration) -> Result<(), StoreError> {
        self.put(&BLOCK, key, &[Kind::Block.byte()], ttl, &[]).await
    }
}

impl RedisStore {
    async fn put(
        &self,
        script: &Script,
        key: &str,
        entry: &[u8],
        ttl: Duration,
        stay: &[u8],
    ) -> Result<(), StoreError> {
        let args = [
            entry.to_vec(),
            number(Some(ttl.as_millis().max(1))),
            stay.to_vec(),
        ];
        let _: bool = self
            .run(script, &[self.shared.keys.front(key)], &args)
            .await?;
        Ok(())
    }
}
