//! Deleting what has expired.

use super::{Engine, Inner, Spawned};
use crate::clock::micros;
use crate::error::{Error, StoreError};
use crate::store::Sweep;
use crate::sync::Arc;
use crate::telemetry::{self, StoreStep};

const BATCH: u32 = 1_000;

/// One batch that was deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    pub(super) rows: u64,
    /// Whether nothing was left.
    pub(super) is_last: bool,
}

impl Inner {
    /// Deletes one batch, out of reach of the caller's cancellation.
    pub(super) async fn sweep_batch(self: &Arc<Self>) -> Spawned<Result<Batch, StoreError>> {
        let inner = Arc::clone(self);
        let work = self.spawn(async move {
            let request = Sweep {
                limit: BATCH,
                grace_us: micros(inner.limits.grace),
            };
            let limit = inner.limits.store_timeout;
            let swept = inner.store_call(StoreStep::Sweep, limit, inner.store.sweep(&request));
            Some(swept.await.map(|rows| {
                telemetry::swept(rows);
                Batch {
                    rows,
                    is_last: rows < u64::from(BATCH),
                }
            }))
        });
        work.await
    }
}

impl Engine {
    /// Deletes what is finished or released and past its TTL and the grace, in
    /// batches of 1,000, and returns how many rows that were.
    ///
    /// Expired records count as absent before they are swept; this only frees
    /// space. [`sweeper`](Self::sweeper) does it again and again.
    ///
    /// # Concurrent calls
    /// Harmless, also from several processes.
    ///
    /// # Cancel safety
    /// Batches that were deleted stay deleted.
    ///
    /// # Errors
    /// If the store does not answer.
    ///
    /// # Panics
    /// If the store does.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let mut total: u64 = 0;
        loop {
            let batch = match self.inner.sweep_batch().await {
                Spawned::Done(batch) => batch?,
                Spawned::Panicked(panic) => std::panic::resume_unwind(panic),
                Spawned::Gone => return Err(Error::ShuttingDown),
            };
            total = total.saturating_add(batch.rows);
            if batch.is_last {
                return Ok(total);
            }
        }
    }
}
