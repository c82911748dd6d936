//! One trip to the store for callers of one key in this process.
//!
//! Invariants:
//!
//! 1. A flight gives nobody the right to run a body. It may wait, share
//!    recorded bytes, and end.
//! 2. A flight is in the map exactly while its [`Lead`] lives. Both go under
//!    the shard's lock, by identity, before followers are told.
//! 3. However a lead ends (landed, dropped, panicked) its followers wake: with
//!    the recorded answer, or to ask the store themselves.
//!
//! Nothing stays here after a flight: a late caller goes to the store.

use std::any::TypeId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::identity::{Fingerprint, RecordId};
use crate::record::{Recorded, VersionBytes};
use crate::sync::{Arc, Mutex, lock, watch};

const SHARDS: usize = 64;

/// What callers must have in common to share a flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FlightKey {
    pub(crate) id: RecordId,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) version: Option<VersionBytes>,
    pub(crate) codec: &'static str,
    pub(crate) output: TypeId,
}

/// A recorded answer on its way to followers.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) answer: Recorded,
    pub(crate) finished_us: i64,
    pub(crate) attempt: i32,
}

type Progress = Option<Arc<Landed>>;

/// The flights of one engine.
#[derive(Debug)]
pub(crate) struct Flights {
    shards: Vec<Shard>,
}

type Shard = Mutex<HashMap<FlightKey, Arc<watch::Sender<Progress>>>>;

/// A caller's part in a flight.
#[derive(Debug)]
pub(crate) enum Part {
    Lead(Lead),
    Follow(Follow),
}

/// The caller that asks the store.
#[derive(Debug)]
pub(crate) struct Lead {
    flights: Arc<Flights>,
    key: FlightKey,
    sender: Arc<watch::Sender<Progress>>,
}

/// A caller that waits for the lead.
#[derive(Debug)]
pub(crate) struct Follow {
    receiver: watch::Receiver<Progress>,
}

impl Flights {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    fn shard(&self, key: &FlightKey) -> &Shard {
        // Ids are digests: any byte spreads evenly.
        &self.shards[usize::from(key.id.as_bytes()[0]) % SHARDS]
    }

    /// Joins the flight of this key, or starts one.
    pub(crate) fn join(self: &Arc<Self>, key: FlightKey) -> Part {
        let mut shard = lock(self.shard(&key));
        match shard.entry(key) {
            Entry::Occupied(flight) => Part::Follow(Follow {
                receiver: flight.get().subscribe(),
            }),
            Entry::Vacant(slot) => {
                let sender = Arc::new(watch::Sender::new(None));
                let key = slot.key().clone();
                slot.insert(Arc::clone(&sender));
                Part::Lead(Lead {
                    flights: Arc::clone(self),
                    key,
                    sender,
                })
            }
        }
    }

    /// Returns how many flights there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }
}

impl Lead {
    /// Gives the recorded answer to the followers.
    pub(crate) fn land(self, landed: &Arc<Landed>) {
        self.leave();
        self.sender.send_replace(Some(Arc::clone(landed)));
    }

    fn leave(&self) {
        let mut shard = lock(self.flights.shard(&self.key));
        // By identity: an old lead must not end a newer flight.
        if let Entry::Occupied(flight) = shard.entry(self.key.clone())
            && Arc::ptr_eq(flight.get(), &self.sender)
        {
            flight.remove();
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.leave();
        // The sender goes with the lead, which wakes the followers.
    }
}

impl Follow {
    /// Waits for the flight's end: the recorded answer, or none if the store
    /// must be asked.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn landed(&mut self) -> Option<Arc<Landed>> {
        self.receiver
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|landed| landed.clone())
    }
}
