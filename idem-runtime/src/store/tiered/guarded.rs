//! A front that may be slow, down or silent, and never holds up a call for long.

use std::time::Duration;

use super::front::Front;
use crate::clock::{Clock, micros};
use crate::error::StoreError;
use crate::sync::{Arc, AtomicI64, Ordering};

/// How long a call waits for the front.
const LIMIT: Duration = Duration::from_millis(100);
/// How long an operator waits for it.
const BLOCK_LIMIT: Duration = Duration::from_secs(1);
/// How long the front is left alone after it failed.
const QUIET: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Guarded {
    front: Arc<dyn Front>,
    clock: Arc<dyn Clock>,
    /// Until when the front is left alone, by the monotonic clock; zero while
    /// it answers.
    quiet_until_us: AtomicI64,
}

impl Guarded {
    pub(super) fn new(front: Arc<dyn Front>, clock: Arc<dyn Clock>) -> Self {
        Self {
            front,
            clock,
            quiet_until_us: AtomicI64::new(0),
        }
    }

    pub(super) async fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.ask(|| self.front.get(key)).await.flatten()
    }

    pub(super) async fn fill(&self, key: &str, entry: &[u8], ttl: Duration) {
        self.ask(|| self.front.fill(key, entry, ttl)).await;
    }

    pub(super) async fn hint(&self, key: &str, entry: &[u8], ttl: Duration) {
        self.ask(|| self.front.hint(key, entry, ttl)).await;
    }

    pub(super) async fn clear_hint(&self, key: &str) {
        self.ask(|| self.front.clear_hint(key)).await;
    }

    /// Returns whether the front has acknowledged the block. It is asked also
    /// while it is left alone.
    pub(super) async fn block(&self, key: &str, ttl: Duration) -> bool {
        let block = self.front.block(key, ttl);
        matches!(tokio::time::timeout(BLOCK_LIMIT, block).await, Ok(Ok(())))
    }

    /// Asks the front, unless it is left alone; none if it does not answer.
    async fn ask<T, Answer>(&self, call: impl FnOnce() -> Answer) -> Option<T>
    where
        Answer: Future<Output = Result<T, StoreError>>,
    {
        let is_try = self.enter()?;
        let failed = match tokio::time::timeout(LIMIT, call()).await {
            Ok(Ok(answer)) => {
                if is_try {
                    self.quiet_until_us.store(0, Ordering::SeqCst);
                }
                return Some(answer);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it did not answer in time".to_owned(),
        };
        let until = micros(self.clock.monotonic().saturating_add(QUIET));
        if self.quiet_until_us.swap(until, Ordering::SeqCst) == 0 {
            tracing::warn!(target: "idem::store", error = failed,
                "the front failed: the store behind answers every call until it is back");
        }
        None
    }

    /// Lets a call ask the front, and says whether it is the one that tries it
    /// after a failure; none while it is left alone.
    fn enter(&self) -> Option<bool> {
        let until = self.quiet_until_us.load(Ordering::SeqCst);
        if until == 0 {
            return Some(false);
        }
        let now = self.clock.monotonic();
        if micros(now) < until {
            return None;
        }
        // One tries; the others do not wait for it.
        let next = micros(now.saturating_add(QUIET));
        self.quiet_until_us
            .compare_exchange(until, next, Ordering::SeqCst, Ordering::SeqCst)
            .ok()
            .map(|_| true)
    }
}
