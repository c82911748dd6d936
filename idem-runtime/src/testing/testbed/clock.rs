//! The clock of a testbed: while it moves, leases are renewed.

use std::sync::Weak;
use std::time::Duration;

use crate::clock::{Clock, ManualClock};
use crate::engine::{Engine, Inner};
use crate::sync::{Arc, Mutex, lock};

/// The clock of a [`Testbed`](super::Testbed) and of its other processes.
///
/// It moves only when told to. `Clone`; clones share the same time. Code under
/// test that needs a [`Clock`] may have it, too.
#[derive(Debug, Clone)]
pub struct TestClock {
    manual: ManualClock,
    processes: Arc<Mutex<Vec<Weak<Inner>>>>,
}

impl TestClock {
    pub(super) fn new(manual: ManualClock) -> Self {
        Self {
            manual,
            processes: Arc::default(),
        }
    }

    pub(super) fn manual(&self) -> &ManualClock {
        &self.manual
    }

    pub(super) fn add(&self, engine: &Engine) {
        lock(&self.processes).push(Arc::downgrade(&engine.inner));
    }

    /// Moves the clock forward. Bodies that run live on, as they do while real
    /// time goes by: the clock moves in slices of half the shortest lease held,
    /// and leases are renewed between them.
    ///
    /// Not renewed are attempts that have crashed, and those beyond their
    /// `max_run`. It blocks until the renewals are made: some microseconds for
    /// each slice. A call that comes in meanwhile may find its lease over when
    /// it gets it, as after a pause; wait until the body has begun.
    pub fn advance(&self, by: Duration) {
        // Held to the end, so that two who advance do not skip renewals.
        let mut processes = lock(&self.processes);
        processes.retain(|process| process.strong_count() > 0);
        let mut left = by;
        loop {
            let engines = processes.iter().filter_map(Weak::upgrade);
            let shortest = engines
                .filter_map(|engine| engine.renewals.renew_now())
                .min();
            if left.is_zero() {
                return;
            }
            let slice = shortest.map_or(left, |lease| std::cmp::min(left, lease / 2));
            self.manual.advance(slice);
            left -= slice;
        }
    }
}

impl Clock for TestClock {
    fn unix_us(&self) -> i64 {
        self.manual.unix_us()
    }

    fn monotonic(&self) -> Duration {
        self.manual.monotonic()
    }
}
