//! A store that counts what is asked of the one behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use idem::StoreError;
use idem::store::{
    Complete, Finding, MarkUnknown, Meta, Release, Renewer, Reserve, Reserved, Store, Sweep,
    Written,
};

/// The wrapper; clones count together.
#[derive(Debug, Clone)]
pub struct Counting<S> {
    store: S,
    asked: Arc<AtomicUsize>,
}

impl<S> Counting<S> {
    /// Wraps a store.
    pub fn new(store: S) -> Self {
        Self {
            store,
            asked: Arc::default(),
        }
    }

    /// How many reservations and ends of attempts were asked for.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn count(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl<S: Store> Store for Counting<S> {
    fn kind(&self) -> &'static str {
        self.store.kind()
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        self.store.pin(meta).await
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.store.check().await
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        self.count();
        self.store.reserve(request).await
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        self.count();
        self.store.complete(request).await
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        self.count();
        self.store.release(request).await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.count();
        self.store.mark_unknown(request).await
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        self.store.sweep(request).await
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        self.store.renewer().await
    }
}
