//! A store that can do no more than it must.

use async_trait::async_trait;
use idem::StoreError;
use idem::store::{
    Complete, Finding, MarkUnknown, MemoryStore, Meta, Release, Renewer, Reserve, Reserved, Store,
    Sweep, Written,
};

#[derive(Debug, Default)]
pub(crate) struct Blind(MemoryStore);

#[async_trait]
impl Store for Blind {
    fn kind(&self) -> &'static str {
        "blind"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        self.0.pin(meta).await
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.0.check().await
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        self.0.reserve(request).await
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        self.0.complete(request).await
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        self.0.release(request).await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        Store::mark_unknown(&self.0, request).await
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        self.0.sweep(request).await
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        self.0.renewer().await
    }
}
