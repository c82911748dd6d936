//! Finished answers in this process's memory, so that a replay asks no store.
//!
//! Off unless [`EngineBuilder::cache`](super::EngineBuilder::cache) says how
//! large. Invariants:
//!
//! 1. **Nothing but recorded answers**, whole when they came in: never that an
//!    attempt runs, a doubt or a tombstone, and nothing of a call with a version,
//!    whose answer a newer one may replace.
//! 2. **Never past its TTL.** An entry's end is counted from before the store
//!    was asked, so that it comes before the store's. Both of this process's clocks
//!    must agree that it has not come: the monotonic one stands still while a
//!    host sleeps, and the other one may be set back.
//! 3. **Never after a change by hand** through this engine. While one is under
//!    way nothing of its record comes in, and what was asked before it began or
//!    before it ended never does. A change through another engine is not seen here:
//!    that is what an entry's greatest age is for.
//!
//! An answer counts only for the call that it was recorded for: its record, its
//! payload, its codec and its type.

use std::any::TypeId;
use std::ops::RangeInclusive;
use std::time::Duration;

use quick_cache::sync::DefaultLifecycle;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use super::Inner;
use crate::clock::{Clock, from_micros, micros};
use crate::error::Error;
use crate::identity::{Fingerprint, RecordId};
use crate::singleflight::{FlightKey, Flights, Landed};
use crate::sync::{Arc, Mutex, lock};

/// How many bytes a cache may have.
const BYTES: RangeInclusive<u64> = 64 << 10..=64 << 30;
/// How old an entry may become.
const AGES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3_600);
pub(super) const DEFAULT_AGE: Duration = Duration::from_secs(60);

/// What an entry takes beside the bytes of its answer: itself, its place in the
/// table, and what the table remembers of those that had to go, rounded up.
const OVERHEAD: usize = 512;
/// Each has a lock and an equal part of the bytes.
const SHARDS: usize = 16;
const STRIPES: usize = 64;

type Answers = quick_cache::sync::Cache<RecordId, Arc<Cached>, Weight>;

/// The finished answers of one engine.
pub(crate) struct Cache {
    answers: Answers,
    age: Duration,
    /// What decides whether an answer may come in, by record. Only who changes
    /// the cache takes these locks, never who looks.
    stripes: [Mutex<Stripe>; STRIPES],
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never what is in it: that is the user's.
        f.debug_struct("Cache")
            .field("len", &self.answers.len())
            .field("weight", &self.answers.weight())
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Stripe {
    /// Counts the changes by hand that began or ended.
    changes: u64,
    /// How many are under way.
    changing: usize,
}

/// A finished answer, and for which calls and until when it counts.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) landed: Arc<Landed>,
    fingerprint: Fingerprint,
    codec: &'static str,
    output: TypeId,
    asked: Duration,
    until: Duration,
    until_unix_us: i64,
}

impl Cached {
    fn is_of(&self, key: &FlightKey) -> bool {
        self.fingerprint == key.fingerprint
            && self.output == key.output
            && self.codec == key.codec
            && key.version.is_none()
    }

    fn is_fresh(&self, clock: &dyn Clock) -> bool {
        clock.monotonic() < self.until && clock.unix_us() < self.until_unix_us
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<RecordId, Arc<Cached>> for Weight {
    fn weight(&self, _: &RecordId, cached: &Arc<Cached>) -> u64 {
        let answer = &cached.landed.answer;
        let bytes = answer.bytes.capacity().saturating_add(OVERHEAD);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// The moment before the store is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    changes: u64,
    monotonic: Duration,
    unix_us: i64,
}

/// A change of a record by hand that is under way.
#[derive(Debug)]
struct Changing<'a> {
    cache: &'a Cache,
    id: RecordId,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let mut stripe = lock(self.cache.stripe(&self.id));
        stripe.changes += 1;
        stripe.changing -= 1;
    }
}

impl Cache {
    /// Makes a cache of so many bytes; none for no bytes.
    pub(super) fn new(bytes: usize, age: Duration) -> Result<Option<Self>, Error> {
        let wrong = |what| {
            Err(Error::misuse_at_start(format!(
                "the engine cannot start: {what}"
            )))
        };
        if !AGES.contains(&age) {
            return wrong("an answer is cached for 1 ms to 1 hour");
        }
        if bytes == 0 {
            return Ok(None);
        }
        let capacity = u64::try_from(bytes).unwrap_or(u64::MAX);
        if !BYTES.contains(&capacity) {
            return wrong("the cache has 64 KiB to 64 GiB, or 0 bytes for none");
        }
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity((bytes / (2 * OVERHEAD)).max(SHARDS * 32))
            .weight_capacity(capacity)
            .build();
        let Ok(options) = options else {
            return wrong("the cache has a size that does not fit");
        };
        Ok(Some(Self {
            answers: Answers::with_options(
                options,
                Weight,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            age,
            stripes: std::array::from_fn(|_| Mutex::default()),
        }))
    }

    fn stripe(&self, id: &RecordId) -> &Mutex<Stripe> {
        // Ids are digests: any byte spreads evenly.
        &self.stripes[usize::from(id.as_bytes()[0]) % STRIPES]
    }

    fn get(&self, key: &FlightKey, clock: &dyn Clock) -> Option<Arc<Cached>> {
        let cached = self.answers.get(&key.id)?;
        (cached.is_of(key) && cached.is_fresh(clock)).then_some(cached)
    }

    fn asking(&self, id: &RecordId, clock: &dyn Clock) -> Asked {
        Asked {
            changes: lock(self.stripe(id)).changes,
            monotonic: clock.monotonic(),
            unix_us: clock.unix_us(),
        }
    }

    /// Keeps an answer that the store gave or took after it was asked, and keeps
    /// for so long from then on.
    fn keep(&self, asked: Asked, key: &FlightKey, landed: &Arc<Landed>, left_us: Option<i64>) {
        let age = left_us.map_or(self.age, |left| self.age.min(from_micros(left)));
        let cached = Arc::new(Cached {
            landed: Arc::clone(landed),
            fingerprint: key.fingerprint,
            codec: key.codec,
            output: key.output,
            asked: asked.monotonic,
            until: asked.monotonic.saturating_add(age),
            until_unix_us: asked.unix_us.saturating_add(micros(age)),
        });
        // Looked at and put in under one lock, so that no change comes between.
        let stripe = lock(self.stripe(&key.id));
        if stripe.changing > 0 || stripe.changes != asked.changes {
            return;
        }
        // The slower of two replies may be the older.
        let newer = |there: Arc<Cached>| there.asked > asked.monotonic;
        if !self.answers.peek(&key.id).is_some_and(newer) {
            self.answers.insert(key.id, cached);
        }
    }

    fn changing(&self, id: &RecordId) -> Changing<'_> {
        let mut stripe = lock(self.stripe(id));
        stripe.changes += 1;
        stripe.changing += 1;
        self.answers.remove(id);
        Changing {
            cache: self,
            id: *id,
        }
    }
}

impl Inner {
    /// Finds the finished answer of a call, without asking the store.
    pub(crate) fn cached(&self, key: &FlightKey) -> Option<Arc<Cached>> {
        self.cache.as_ref()?.get(key, &*self.clock)
    }

    /// Notes that the store is asked now, if its answer may be kept here.
    pub(crate) fn asking(&self, key: &FlightKey) -> Option<Asked> {
        let cache = self.cache.as_ref()?;
        key.version
            .is_none()
            .then(|| cache.asking(&key.id, &*self.clock))
    }

    /// Keeps an answer that the store keeps for `left_us` after it was asked;
    /// without it, for ever.
    pub(crate) fn keep(
        &self,
        asked: Option<Asked>,
        key: &FlightKey,
        landed: &Arc<Landed>,
        left_us: Option<i64>,
    ) {
        if let (Some(cache), Some(asked)) = (&self.cache, asked) {
            cache.keep(asked, key, landed, left_us);
        }
    }

    /// Says that the record runs anew: whatever is here is not its answer.
    pub(crate) fn outdated(&self, id: &RecordId) {
        if let Some(cache) = &self.cache {
            cache.answers.remove(id);
        }
    }

    /// Begins a change of a record by hand: no answer of it is here until the
    /// store has said how it ended, and no call that begins after that is told
    /// what was found before.
    pub(crate) fn changing(&self, id: &RecordId) -> ByHand<'_> {
        ByHand {
            flights: &self.flights,
            id: *id,
            _cached: self.cache.as_ref().map(|cache| cache.changing(id)),
        }
    }
}

/// A change of a record by hand, from before the store is asked for it until
/// after its reply.
#[derive(Debug)]
#[must_use = "the change is over when it is dropped"]
pub(crate) struct ByHand<'a> {
    flights: &'a Flights,
    id: RecordId,
    _cached: Option<Changing<'a>>,
}

impl Drop for ByHand<'_> {
    fn drop(&mut self) {
        self.flights.close(&self.id);
    }
}
