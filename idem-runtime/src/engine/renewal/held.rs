//! The leases that are renewed, as calls see them and as the thread does.
//!
//! A call notes its lease here and takes it out again without waking the
//! thread, which looks when the next renewal is due: a wake costs a call more
//! than its own work. Only a lease that must be renewed earlier than the thread
//! would look wakes it.

use std::collections::HashMap;

use crate::clock::{Clock, micros};
use crate::engine::attempt::AttemptState;
use crate::record::Claim;
use crate::sync::{Arc, Mutex, lock};

/// When a lease of this length is renewed, from now.
fn due_us(now_us: i64, lease_us: i64) -> i64 {
    now_us.saturating_add(lease_us / 3)
}

pub(super) fn shortest<'a>(states: impl IntoIterator<Item = &'a Arc<AttemptState>>) -> Option<i64> {
    let leases = states.into_iter().map(|state| state.prepared.lease_us());
    leases.min()
}

#[derive(Debug)]
pub(super) struct Held {
    clock: Arc<dyn Clock>,
    leases: Mutex<Leases>,
}

#[derive(Debug)]
struct Leases {
    of: HashMap<Claim, Arc<AttemptState>>,
    /// When the thread looks; it may find nothing then.
    next_us: i64,
}

impl Held {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            leases: Mutex::new(Leases {
                of: HashMap::new(),
                next_us: i64::MAX,
            }),
        }
    }

    /// Deadlines are those of this process: never a store's time.
    pub(super) fn now_us(&self) -> i64 {
        micros(self.clock.monotonic())
    }

    /// Adds a lease, and says whether the thread would look too late for it.
    pub(super) fn add(&self, state: &Arc<AttemptState>) -> bool {
        let due_us = due_us(self.now_us(), state.prepared.lease_us());
        let mut leases = lock(&self.leases);
        leases.of.insert(state.holder.claim, Arc::clone(state));
        let is_early = due_us < leases.next_us;
        if is_early {
            leases.next_us = due_us;
        }
        is_early
    }

    pub(super) fn remove(&self, claim: &Claim) {
        let removed = lock(&self.leases).of.remove(claim);
        // Not under the lock: it may be the last that holds on to its call.
        drop(removed);
    }

    pub(super) fn contains(&self, claim: &Claim) -> bool {
        lock(&self.leases).of.contains_key(claim)
    }

    pub(super) fn all(&self) -> Vec<Arc<AttemptState>> {
        lock(&self.leases).of.values().cloned().collect()
    }

    pub(super) fn shortest(&self) -> Option<i64> {
        shortest(lock(&self.leases).of.values())
    }

    pub(super) fn next_us(&self) -> i64 {
        lock(&self.leases).next_us
    }

    /// Returns what is to be renewed now, and plans the next look.
    pub(super) fn take_due(&self, now_us: i64) -> Vec<Arc<AttemptState>> {
        let mut leases = lock(&self.leases);
        let renewed = leases
            .of
            .values()
            .filter(|state| state.is_renewed_at(now_us));
        let due: Vec<_> = renewed.cloned().collect();
        leases.next_us = shortest(&due).map_or(i64::MAX, |lease| due_us(now_us, lease));
        due
    }

    /// Plans a look at this time, unless there is one before.
    pub(super) fn look_at(&self, us: i64) {
        let mut leases = lock(&self.leases);
        leases.next_us = std::cmp::min(leases.next_us, us);
    }

    /// Takes everything out.
    pub(super) fn drain(&self) -> Vec<Arc<AttemptState>> {
        let mut leases = lock(&self.leases);
        leases.next_us = i64::MAX;
        leases.of.drain().map(|(_, state)| state).collect()
    }
}
