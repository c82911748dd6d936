//! A fast front that answers replays, before a store that decides.
//!
//! For operations that are repeated much more often than they run: a replay is
//! then one trip to the front, and none to the database. Who may run a body,
//! and what is recorded, the store behind decides alone. A front that loses its
//! entries, is emptied, answers late, never, or what stood there long ago, never
//! causes a second run.
//!
//! | | |
//! |---|---|
//! | atomic primitive | that of the store behind |
//! | clock | that of the store behind; how long an entry of the front is used, by the host's |
//! | durability, fail-over | that of the store behind; the front needs none |
//! | largest answer | that of the store behind; a front may keep less |
//!
//! | step | front | store behind |
//! |---|---|---|
//! | reserve | asked first; given a completed answer or a hint afterwards | if the front has no answer to this very request |
//! | reserve with a version, or sent again | not asked | always |
//! | complete, release, unknown | a hint is removed, after the store has acknowledged | always |
//! | renew, give back, sweep, standings, pin, check | nothing | always |
//! | an operator forgets a record | blocked first | then |
//! | the other questions of operators | nothing; a hint is removed | always |
//!
//! # What it costs
//! - A call that runs pays one trip to the front before the store is asked, and
//!   one after its answer is recorded.
//! - **An outcome is seen late by at most the [`hint`](TieredOptions::hint)**
//!   (one second). While another attempt runs, callers are told so by the front,
//!   and ask the store behind once in that time.
//! - Where an operator [forgets](Settlement::Forgotten) a record, the front must
//!   be up: otherwise it is refused, and nothing is changed. For an hour that
//!   record's replays then come from the store behind.
//!
//! # What a front can do to an answer
//! An entry counts for the payload, record and store that it was written for,
//! if it is whole and its end, by the host's clock, is not over: that of the
//! TTL, or an hour after the store was asked, whichever is first. A TTL that is
//! over can so be replayed only where a front keeps what has expired *and* the
//! hosts' clocks differ, by no more than they differ.
//!
//! So forget a record through a tiered store with the same front. Who forgets it
//! in the store behind alone leaves its answer in the front, for an hour at most.
//!
//! A block outlives every entry that can be under way when a record is
//! forgotten. If the front loses the block as well, a delayed entry can bring
//! the forgotten answer back, for an hour at most.
//!
//! Entries hold answers in clear, and their digest is no signature: whoever can
//! write to the front can forge an answer, as whoever can write to the store.
//!
//! An operation that has versions today and none tomorrow may be told an
//! answer that a newer version has replaced, for an hour: keep the version.
//!
//! # Concurrency
//! Many processes may share the front and the store. Each waits for the front
//! at most 100 ms, and leaves it alone for a second after it failed.
//!
//! # Cancel safety
//! As the store behind. A call that is dropped may leave the front without an
//! entry, or with a hint that ends by itself.

mod claims;
mod entry;
mod front;
mod guarded;

use std::time::Duration;

use async_trait::async_trait;

use self::claims::Claims;
use self::entry::{Entry, Told};
pub use self::front::{Front, Kind, MemoryFront};
use self::guarded::Guarded;
use super::{
    Audited, Capability, Complete, Count, Counts, Finding, Holder, MarkUnknown, Meta, Page,
    RecordStep, Release, Renewer, Reserve, Reserved, Scan, Seen, Settle, Standings, Step, Store,
    StoreAdmin, Sweep, Written,
};
use crate::clock::{Clock, SystemClock, from_micros, micros};
use crate::error::{StoreError, StoreErrorKind};
use crate::identity::RecordId;
use crate::record::Standing;
use crate::store::Transactional;
use crate::sync::{Arc, Mutex, lock};
use crate::transition::Settlement;

/// The longest that an entry is used after the store was asked.
const LONGEST: Duration = Duration::from_secs(3_600);
/// How much longer a block stands: hosts' clocks differ.
const CLOCKS: Duration = Duration::from_secs(60);
const HINT: Duration = Duration::from_secs(1);

/// A store behind a front; see the [module page](self).
///
/// Clones share both.
///
/// # Examples
/// ```
/// use idem::store::tiered::MemoryFront;
/// use idem::store::{MemoryStore, TieredStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = TieredStore::new(MemoryFront::new(), MemoryStore::new());
/// let engine = idem::Engine::builder(store).namespace("shop").build().await?;
/// # drop(engine); Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct TieredStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    front: Guarded,
    back: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    claims: Claims,
    hint: Duration,
    /// Of the store behind, so that another one, or the same one emptied, never
    /// meets entries of this one. Until it is known the front is not used.
    instance: Mutex<Option<[u8; 16]>>,
}

/// How to put a front before a store.
#[derive(Debug)]
#[must_use = "call `build`"]
pub struct TieredOptions {
    front: Arc<dyn Front>,
    back: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    hint: Duration,
}

impl TieredOptions {
    /// Sets how long the front says "in progress" before the store behind is
    /// asked again, and so how late an outcome is seen: by default one second.
    /// Zero leaves every such question to the store behind. All processes should
    /// use the same.
    pub fn hint(mut self, hint: Duration) -> Self {
        self.hint = hint;
        self
    }

    /// Sets the host's clock, for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Puts the front before the store.
    #[must_use]
    pub fn build(self) -> TieredStore {
        TieredStore(Arc::new(Shared {
            front: Guarded::new(self.front, Arc::clone(&self.clock)),
            back: self.back,
            claims: Claims::new(Arc::clone(&self.clock)),
            clock: self.clock,
            hint: self.hint,
            instance: Mutex::default(),
        }))
    }
}

impl TieredStore {
    /// Puts `front` before `back`, with the defaults.
    #[must_use]
    pub fn new(front: impl Front, back: impl Store) -> Self {
        Self::options(front, back).build()
    }

    /// Returns the options to put `front` before `back` with.
    pub fn options(front: impl Front, back: impl Store) -> TieredOptions {
        TieredOptions {
            front: Arc::new(front),
            back: Arc::new(back),
            clock: Arc::new(SystemClock),
            hint: HINT,
        }
    }

    /// The front's key of a record; none until the store behind is known.
    fn key(&self, id: &RecordId) -> Option<String> {
        let instance = u128::from_be_bytes((*lock(&self.0.instance))?);
        Some(format!("idem-front:{instance:032x}:{}", id.to_hex()))
    }

    /// Asks the front, and trusts what it says no further than it must.
    async fn peek(&self, key: &str, request: &Reserve) -> Option<Reserved> {
        if self.0.claims.contains(&request.claim) {
            return None;
        }
        let bytes = self.0.front.get(key).await?;
        let entry = Entry::decode(&bytes, key, &request.id)?;
        let now_us = self.0.clock.unix_us();
        let left_us = entry.usable_until_us.checked_sub(now_us)?;
        let longest = match entry.told {
            Told::Answer { .. } => LONGEST,
            Told::InProgress { .. } => self.0.hint,
        };
        // What is usable for longer than this host would say is of a host whose
        // clock is far ahead.
        if entry.fingerprint != request.fingerprint || !(0..=micros(longest)).contains(&left_us) {
            return None;
        }
        match entry.told {
            Told::Answer {
                answer,
                finished_us,
                attempt,
                expires_us,
            } => Some(Reserved::Completed {
                answer,
                finished_us,
                attempt,
                left_us: expires_us.map(|at| at.saturating_sub(now_us)),
            }),
            Told::InProgress { lease_ends_us } => {
                // The grace is each caller's own.
                let lapses_us = lease_ends_us.saturating_add(request.grace_us);
                let left_us = lapses_us.saturating_sub(now_us);
                (left_us > 0 && !longest.is_zero()).then_some(Reserved::InProgress { left_us })
            }
        }
    }

    /// Asks the store behind.
    async fn ask(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        self.0.claims.insert(request.claim);
        let reply = self.0.back.reserve(request).await?;
        if !matches!(reply, Reserved::Won(_)) {
            self.0.claims.remove(&request.claim);
        }
        Ok(reply)
    }

    /// Puts what the store behind said before the next caller. `sent` is when it
    /// was asked, by the monotonic clock: whatever is left was left then.
    async fn keep(&self, key: &str, request: &Reserve, reply: &Reserved, sent: Duration) {
        let now_us = self.0.clock.unix_us();
        let elapsed = self.0.clock.monotonic().saturating_sub(sent);
        let sent_us = now_us.saturating_sub(micros(elapsed));
        let usable = |longest: Duration, left_us: Option<i64>| {
            let longest_us = micros(longest);
            sent_us.saturating_add(left_us.map_or(longest_us, |left| left.min(longest_us)))
        };
        let (told, usable_until_us) = match reply {
            Reserved::Completed {
                answer,
                finished_us,
                attempt,
                left_us,
            } => (
                Told::Answer {
                    answer: answer.clone(),
                    finished_us: *finished_us,
                    attempt: *attempt,
                    expires_us: left_us.map(|left| sent_us.saturating_add(left)),
                },
                usable(LONGEST, *left_us),
            ),
            Reserved::InProgress { left_us } => (
                Told::InProgress {
                    lease_ends_us: sent_us
                        .saturating_add(*left_us)
                        .saturating_sub(request.grace_us),
                },
                usable(self.0.hint, Some(*left_us)),
            ),
            _ => return,
        };
        let is_answer = matches!(told, Told::Answer { .. });
        let entry = Entry {
            fingerprint: request.fingerprint,
            usable_until_us,
            told,
        };
        let ttl = from_micros(usable_until_us.saturating_sub(now_us));
        let Some(bytes) = entry.encode(key).filter(|_| !ttl.is_zero()) else {
            return;
        };
        if is_answer {
            self.0.front.fill(key, &bytes, ttl).await;
        } else {
            self.0.front.hint(key, &bytes, ttl).await;
        }
    }

    /// Removes what says that an attempt runs, since it has ended.
    async fn ended(&self, id: &RecordId) {
        if let Some(key) = self.key(id).filter(|_| !self.0.hint.is_zero()) {
            self.0.front.clear_hint(&key).await;
        }
    }

    /// Keeps the answer of a record that is about to be forgotten out of the
    /// front, for as long as any entry that is under way can be used.
    async fn block(&self, id: &RecordId) -> Result<(), StoreError> {
        let Some(key) = self.key(id) else {
            return Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                "no engine is built on this store yet, so it is not known what its front holds; nothing was changed",
            ));
        };
        if self.0.front.block(&key, LONGEST + CLOCKS).await {
            return Ok(());
        }
        Err(StoreError::new(
            StoreErrorKind::Transient,
            "its front does not answer, from which a forgotten answer would be replayed; nothing was changed",
        ))
    }

    fn operators(&self) -> Result<&dyn StoreAdmin, StoreError> {
        self.0.back.admin().ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Permanent,
                "the store behind the front has no side for operators",
            )
        })
    }
}

#[async_trait]
impl Store for TieredStore {
    fn kind(&self) -> &'static str {
        "tiered"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        let pinned = self.0.back.pin(meta).await?;
        *lock(&self.0.instance) = Some(pinned.instance);
        Ok(pinned)
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.0.back.check().await
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        let unordered = request.version.is_none();
        let Some(key) = self.key(&request.id).filter(|_| unordered) else {
            return self.0.back.reserve(request).await;
        };
        if let Some(reply) = self.peek(&key, request).await {
            return Ok(reply);
        }
        let sent = self.0.clock.monotonic();
        let reply = self.ask(request).await?;
        self.keep(&key, request, &reply, sent).await;
        Ok(reply)
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        let written = self.0.back.complete(request).await?;
        self.ended(&request.holder.id).await;
        Ok(written)
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        let written = self.0.back.release(request).await?;
        self.ended(&request.holder.id).await;
        Ok(written)
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        let written = self.0.back.mark_unknown(request).await?;
        self.ended(&request.holder.id).await;
        Ok(written)
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        self.0.back.sweep(request).await
    }

    async fn record_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        self.0.back.record_step(request).await
    }

    async fn steps(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        self.0.back.steps(holder).await
    }

    /// Of the store behind: a front does not know what it has not been told.
    async fn standings(&self, request: &Standings) -> Result<Vec<Option<Standing>>, StoreError> {
        self.0.back.standings(request).await
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.0.back.admin().map(|_| self as &dyn StoreAdmin)
    }

    fn lacks(&self) -> &'static [Capability] {
        self.0.back.lacks()
    }

    fn largest_answer(&self) -> Option<usize> {
        self.0.back.largest_answer()
    }

    /// That of the store behind: the front knows nothing of transactions.
    fn transactional(&self) -> Option<&dyn Transactional> {
        self.0.back.transactional()
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        self.0.back.renewer().await
    }
}

#[async_trait]
impl StoreAdmin for TieredStore {
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError> {
        self.operators()?.scan(request).await
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError> {
        self.operators()?.get(id).await
    }

    async fn settle(&self, request: &Settle) -> Result<Written, StoreError> {
        let operators = self.operators()?;
        // Only forgetting takes an answer away that the front may hold.
        if matches!(request.settlement, Settlement::Forgotten) {
            self.block(&request.id).await?;
        }
        let written = operators.settle(request).await?;
        self.ended(&request.id).await;
        Ok(written)
    }

    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError> {
        self.operators()?.audit(id).await
    }

    async fn count(&self, request: &Count) -> Result<Counts, StoreError> {
        self.operators()?.count(request).await
    }
}
