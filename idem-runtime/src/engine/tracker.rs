//! What the engine has running, for `stats` and `shutdown`.

use crate::sync::{Arc, AtomicUsize, Notify, Ordering};
use crate::telemetry;

/// Counts pieces of work.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracker(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    running: AtomicUsize,
    idle: Notify,
    /// The metric that shows it.
    gauge: Option<&'static str>,
}

/// One piece of work, until dropped.
#[derive(Debug)]
pub(crate) struct Tracked(Arc<Counts>);

impl Tracker {
    pub(crate) fn shown_as(gauge: &'static str) -> Self {
        Self(Arc::new(Counts {
            gauge: Some(gauge),
            ..Counts::default()
        }))
    }

    pub(crate) fn track(&self) -> Tracked {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        self.tracked()
    }

    fn tracked(&self) -> Tracked {
        if let Some(gauge) = self.0.gauge {
            telemetry::moved(gauge, true);
        }
        Tracked(Arc::clone(&self.0))
    }

    /// Tracks one more piece unless there are `limit` already.
    pub(crate) fn track_below(&self, limit: usize) -> Option<Tracked> {
        self.0
            .running
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |running| {
                (running < limit).then_some(running + 1)
            })
            .ok()
            .map(|_| self.tracked())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.running.load(Ordering::SeqCst)
    }

    /// Waits until nothing runs.
    pub(crate) async fn idle(&self) {
        loop {
            let notified = self.0.idle.notified();
            let mut notified = std::pin::pin!(notified);
            // Listen first, look second: no wake-up is lost between.
            notified.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if let Some(gauge) = self.0.gauge {
            telemetry::moved(gauge, false);
        }
        if self.0.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
