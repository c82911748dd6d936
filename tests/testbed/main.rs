//! Proves what `idem::testing::Testbed` promises to those who test annotated
//! functions; `charge` is the suite that its page shows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod asserts;
mod charge;
mod clock;
mod crash;
mod page;
mod process;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Holds bodies, and says when one has begun.
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
