//! One trip to the store for callers of one key in this process.
//!
//! Invariants:
//!
//! 1. A flight gives nobody the right to run a body. It may wait, share
//!    recorded bytes, and end.
//! 2. A flight is in the map from when its [`Lead`] begins until that ends, or the
//!    record is changed by hand. It goes under the shard's lock, by identity,
//!    before followers are told.
//! 3. However a lead ends (landed, dropped, panicked) its followers wake: with
//!    the recorded answer, or to ask the store themselves. It ends once.
//!
//! Nothing stays here after a flight: a late caller goes to the store.

use std::any::TypeId;
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use crate::identity::{Fingerprint, RecordId};
use crate::record::{Recorded, VersionBytes};
use crate::sync::{Arc, Mutex, Notify, lock};

const SHARDS: usize = 64;

/// What callers must have in common to share a flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlightKey {
    pub(crate) id: RecordId,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) version: Option<VersionBytes>,
    pub(crate) codec: &'static str,
    pub(crate) output: TypeId,
}

// Of one id there is mostly one flight, and ids are digests: a part of it
// spreads evenly. Equality is on the whole key.
impl Hash for FlightKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [_, word, ..] = self.id.as_bytes().as_chunks::<8>().0 else {
            return;
        };
        state.write_u64(u64::from_ne_bytes(*word));
    }
}

/// A recorded answer on its way to followers.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) answer: Recorded,
    pub(crate) finished_us: i64,
    pub(crate) attempt: i32,
}

/// The flights of one engine.
#[derive(Debug)]
pub(crate) struct Flights {
    shards: Vec<Shard>,
}

type Shard = Mutex<HashSet<ByKey, Seeded>>;

/// A flight, found by its key.
#[derive(Debug)]
struct ByKey(Arc<Flight>);

#[derive(Debug)]
struct Flight {
    key: FlightKey,
    /// How it ended, once it has: with an answer, or without one.
    end: Mutex<Option<Option<Arc<Landed>>>>,
    ended: Notify,
}

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
    flight: Arc<Flight>,
    has_ended: bool,
}

/// A caller that waits for the lead.
#[derive(Debug)]
pub(crate) struct Follow {
    flight: Arc<Flight>,
}

impl Flights {
    pub(crate) fn new() -> Self {
        let seed = RandomState::new().hash_one(SHARDS);
        Self {
            shards: (0..SHARDS)
                .map(|_| Mutex::new(HashSet::with_hasher(Seeded(seed))))
                .collect(),
        }
    }

    fn shard(&self, id: &RecordId) -> &Shard {
        // Ids are digests: any byte spreads evenly.
        &self.shards[usize::from(id.as_bytes()[0]) % SHARDS]
    }

    /// Joins the flight of this key, or starts one.
    pub(crate) fn join(self: &Arc<Self>, key: &FlightKey) -> Part {
        let mut shard = lock(self.shard(&key.id));
        if let Some(ByKey(flight)) = shard.get(key) {
            return Part::Follow(Follow {
                flight: Arc::clone(flight),
            });
        }
        let flight = Arc::new(Flight {
            key: key.clone(),
            end: Mutex::new(None),
            ended: Notify::new(),
        });
        shard.insert(ByKey(Arc::clone(&flight)));
        drop(shard);
        Part::Lead(Lead {
            flights: Arc::clone(self),
            flight,
            has_ended: false,
        })
    }

    /// Lets nobody else join the flights of a record. Whoever is in one already
    /// gets what its lead finds.
    pub(crate) fn close(&self, id: &RecordId) {
        lock(self.shard(id)).retain(|ByKey(flight)| flight.key.id != *id);
    }

    /// Returns how many flights there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }
}

impl Lead {
    /// Gives the recorded answer to the followers.
    pub(crate) fn land(mut self, landed: &Arc<Landed>) {
        self.end(Some(Arc::clone(landed)));
    }

    fn end(&mut self, landed: Option<Arc<Landed>>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        self.leave();
        *lock(&self.flight.end) = Some(landed);
        self.flight.ended.notify_waiters();
    }

    fn leave(&self) {
        let key = &self.flight.key;
        let mut shard = lock(self.flights.shard(&key.id));
        // By identity: an old lead must not end a newer flight.
        if let Some(ByKey(flight)) = shard.get(key)
            && Arc::ptr_eq(flight, &self.flight)
        {
            shard.remove(key);
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Follow {
    /// Waits for the flight's end: the recorded answer, or none if the store
    /// must be asked.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn landed(&mut self) -> Option<Arc<Landed>> {
        // Listen first, look second: from here on no end is missed.
        let ended = self.flight.ended.notified();
        let end = lock(&self.flight.end).clone();
        if let Some(end) = end {
            return end;
        }
        ended.await;
        lock(&self.flight.end).clone().flatten()
    }
}

impl Hash for ByKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl Borrow<FlightKey> for ByKey {
    fn borrow(&self) -> &FlightKey {
        &self.0.key
    }
}

/// Hashes one number. Seeded, since without a secret whoever chooses keys could
/// choose digests that meet in one bucket.
#[derive(Debug, Clone, Copy)]
struct Seeded(u64);

impl BuildHasher for Seeded {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        *self
    }
}

impl Hasher for Seeded {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Odd, with its bits spread.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let product = (self.0 ^ number).wrapping_mul(FACTOR);
        self.0 = product ^ (product >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
