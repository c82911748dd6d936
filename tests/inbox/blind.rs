//! Stores that can do no more than they must, or less than they say.

use async_trait::async_trait;
use idem::StoreError;
use idem::record::Standing;
use idem::store::{
    Complete, Finding, MarkUnknown, MemoryStore, Meta, Release, Renewer, Reserve, Reserved,
    Standings, Store, Sweep, Written,
};

/// Has no side for operators, and cannot look at many records.
#[derive(Debug, Default)]
pub(crate) struct Blind(MemoryStore);

/// Forgets to answer for the last record that it is asked about.
#[derive(Debug, Default)]
pub(crate) struct Short(MemoryStore);

macro_rules! store {
    ($name:ident { $($more:tt)* }) => {
        #[async_trait]
        impl Store for $name {
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

            $($more)*
        }
    };
}

store!(Blind {});
store!(Short {
    async fn standings(&self, request: &Standings) -> Result<Vec<Option<Standing>>, StoreError> {
        let mut standings = self.0.standings(request).await?;
        standings.pop();
        Ok(standings)
    }
});
