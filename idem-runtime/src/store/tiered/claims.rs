//! Which claims were sent to the store behind.
//!
//! A reservation that is sent again must be told "yours", which only the store
//! behind can tell. A hint that stands in the front by then knows nothing of
//! whose attempt it is about.

use std::collections::HashSet;
use std::time::Duration;

use crate::clock::Clock;
use crate::record::Claim;
use crate::sync::{Arc, Mutex, lock};

/// Longer than a reservation is sent again.
const KEPT: Duration = Duration::from_secs(60);

/// Claims that were sent, each for [`KEPT`] to twice that.
#[derive(Debug)]
pub(super) struct Claims {
    clock: Arc<dyn Clock>,
    sets: Mutex<Sets>,
}

#[derive(Debug, Default)]
struct Sets {
    young: HashSet<Claim>,
    old: HashSet<Claim>,
    since: Duration,
}

impl Claims {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sets: Mutex::default(),
        }
    }

    pub(super) fn contains(&self, claim: &Claim) -> bool {
        let sets = lock(&self.sets);
        sets.young.contains(claim) || sets.old.contains(claim)
    }

    pub(super) fn insert(&self, claim: Claim) {
        let now = self.clock.monotonic();
        let mut sets = lock(&self.sets);
        if now.saturating_sub(sets.since) >= KEPT {
            sets.old = std::mem::take(&mut sets.young);
            sets.since = now;
        }
        sets.young.insert(claim);
    }

    /// Forgets a claim that was told that it holds nothing.
    pub(super) fn remove(&self, claim: &Claim) {
        let mut sets = lock(&self.sets);
        sets.young.remove(claim);
        sets.old.remove(claim);
    }
}
