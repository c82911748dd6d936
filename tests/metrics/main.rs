//! Proves that metrics count what happened, that what is written about them is
//! true, and that nothing that users pass is in a metric, a span or an event.
//!
//! Metrics and events are the process's, so these tests take turns.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(test)]
mod cache;
#[cfg(test)]
mod canary;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod drive;
#[cfg(test)]
mod faults;
#[cfg(test)]
#[allow(dead_code, reason = "the engine's tests use more of it")]
#[path = "../engine/faulty.rs"]
mod faulty;
#[cfg(test)]
mod gauges;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod listener;
#[cfg(test)]
mod recorder;
#[cfg(test)]
mod totals;

use std::sync::LazyLock;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

const DAY: Duration = Duration::from_secs(86_400);

static TURN: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

/// Waits for this test's turn.
async fn alone() -> MutexGuard<'static, ()> {
    TURN.lock().await
}
