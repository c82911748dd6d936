//! Proves that each message of a queue is handled once, that what a consumer is
//! told loses none, and that a batch gives every item its result.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(test)]
mod batch;
#[cfg(test)]
mod blind;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod forget;
#[cfg(test)]
mod limit;
#[cfg(test)]
mod receive;
#[cfg(test)]
mod unseen;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};

/// The consumer of most tests.
const CONSUMER: &str = "billing.invoice-paid";

/// An error that has a text and nothing else.
#[derive(Debug, PartialEq, Eq)]
struct Broken(&'static str);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Counts how often handlers ran.
#[derive(Debug, Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    /// A handler that returns the number of its run.
    async fn handle(self) -> Result<usize, Broken> {
        tokio::task::yield_now().await;
        Ok(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// A handler that fails.
    async fn fail(self, text: &'static str) -> Result<usize, Broken> {
        tokio::task::yield_now().await;
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(Broken(text))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Holds handlers, and says when one has begun.
#[derive(Debug, Clone)]
struct Gate {
    began: Arc<Notify>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn closed() -> Self {
        Self {
            began: Arc::default(),
            open: Arc::new(Semaphore::new(0)),
        }
    }

    async fn pass(&self) {
        self.began.notify_one();
        self.open.acquire().await.unwrap().forget();
    }

    fn open(&self) {
        self.open.add_permits(1);
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
