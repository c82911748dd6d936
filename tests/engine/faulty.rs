//! A store that fails on purpose.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use idem::store::{
    Complete, Finding, MarkUnknown, MemoryStore, Meta, Release, Renewer, Reserve, Reserved, Store,
    Sweep, Written,
};
use idem::{StoreError, StoreErrorKind};
use tokio::sync::Notify;

/// What goes wrong with one call.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The store does it, and its answer is lost.
    LoseReply,
    /// The store does not do it, and says so.
    Refuse,
    /// The store does not do it, and never will.
    Break,
    /// The call waits here before the store sees it.
    HoldUntil(Arc<Notify>),
}

/// The memory store behind scripted faults: each call takes the next one of
/// its step, and none is left when the list is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faulty {
    pub(crate) inner: MemoryStore,
    reserve: Script,
    end: Script,
}

#[derive(Debug, Clone, Default)]
struct Script(Arc<Mutex<(VecDeque<Fault>, usize)>>);

impl Script {
    /// Counts the call, and takes its fault.
    fn next(&self) -> Option<Fault> {
        let mut script = self.0.lock().unwrap();
        script.1 += 1;
        script.0.pop_front()
    }

    async fn apply<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let failed = |kind| StoreError::new(kind, "a fault of the test");
        match self.next() {
            None => call.await,
            Some(Fault::LoseReply) => {
                call.await?;
                Err(failed(StoreErrorKind::Transient).ambiguous())
            }
            Some(Fault::Refuse) => Err(failed(StoreErrorKind::Transient)),
            Some(Fault::Break) => Err(failed(StoreErrorKind::Permanent)),
            Some(Fault::HoldUntil(notify)) => {
                notify.notified().await;
                call.await
            }
        }
    }
}

impl Faulty {
    pub(crate) fn on_reserve(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.reserve.0.lock().unwrap().0.extend(faults);
        self
    }

    /// On complete, release and unknown.
    pub(crate) fn on_end(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.end.0.lock().unwrap().0.extend(faults);
        self
    }

    pub(crate) fn reserves(&self) -> usize {
        self.reserve.0.lock().unwrap().1
    }

    pub(crate) fn ends(&self) -> usize {
        self.end.0.lock().unwrap().1
    }

    /// Ends the faults that are left.
    pub(crate) fn heal(&self) {
        self.reserve.0.lock().unwrap().0.clear();
        self.end.0.lock().unwrap().0.clear();
    }
}

#[async_trait]
impl Store for Faulty {
    fn kind(&self) -> &'static str {
        "faulty"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        self.inner.pin(meta).await
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.inner.check().await
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        self.reserve.apply(self.inner.reserve(request)).await
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        self.end.apply(self.inner.complete(request)).await
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        self.end.apply(self.inner.release(request)).await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.end
            .apply(Store::mark_unknown(&self.inner, request))
            .await
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        self.inner.sweep(request).await
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        self.inner.renewer().await
    }
}
