//! Where records live: the contract of a store, and the stores.
//!
//! A store is shared by every process that serves the same operations. It
//! decides who may run a body; everything else in this library only waits,
//! shares and times out.
//!
//! # The contract
//!
//! 1. **One atomic step.** [`reserve`](Store::reserve) either wins or returns
//!    what stands there, including a finished answer, and no other call can
//!    come between. Look first and reserve second is a second charge.
//! 2. **Every write is guarded** by claim and fence as the
//!    [`transition`](crate::transition) functions say. They are the
//!    specification; a store that cannot call them must decide as they do.
//! 3. **Every operation may be sent twice.** A lost reply is answered by
//!    sending the same claim again: [`reserve`](Store::reserve) says `Won`
//!    with `resent`, the others [`Written::AlreadyDone`].
//! 4. **Acknowledged means kept.** A reply is given after the write is as
//!    durable as the store gets.
//! 5. **The store's clock decides**, in microseconds, the same for every
//!    process: what one of them has seen of it counts for all or for none. It
//!    stands still when it steps back, or the store lacks
//!    [`Capability::SteadyClock`].
//! 6. **In-progress and unknown records never expire**, and no row is deleted
//!    but by [`sweep`](Store::sweep).
//!
//! Calls are cancelled never: the engine makes each in a task of its own, with
//! a timeout, and reads a timeout as "may have happened".
//!
//! The conformance suite (`idem::testing::conformance`, feature `testing`) is
//! the test of this contract; `docs/custom-store.md` is the guide to writing one.

mod admin;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod connections;
mod finding;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod gather;
mod memory;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "_sql", feature = "redis"))]
mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod standings;
mod steps;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "redis"))]
mod swap;
pub mod tiered;
mod transactional;

use std::fmt::Debug;

use async_trait::async_trait;

pub use self::admin::{Audited, Count, Counts, Page, Scan, Seen, Settle, StoreAdmin};
pub use self::finding::{Capability, Finding};
pub use self::memory::MemoryStore;
#[cfg(feature = "mysql")]
pub use self::mysql::MySqlStore;
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresStore;
#[cfg(feature = "redis")]
pub use self::redis::RedisStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteStore;
pub use self::standings::Standings;
pub use self::steps::{RecordStep, Step};
pub use self::tiered::TieredStore;
pub use self::transactional::{Entrance, Transactional};
use crate::error::{StoreError, StoreErrorKind};
use crate::identity::{Fingerprint, RecordId};
use crate::record::{
    Claim, Element, Label, Recorded, Standing, TombstoneReason, UnknownReason, VersionBytes,
};

/// What all engines on one store must agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The identity format, `idem/1`.
    pub format: String,
    /// Drawn once when the store was created.
    pub instance: [u8; 16],
    /// Proves that two engines use the same secret, without revealing it.
    pub secret_check: [u8; 32],
}

/// What an arriving call may do with a lapsed or unknown record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// Nothing: a lapsed record becomes unknown.
    Refuse,
    /// Take it over and run the body again.
    Rerun,
    /// Take it over to ask the outside world, unless it is too early to.
    Recover,
}

/// A request to take the key or learn why not.
#[derive(Debug, Clone)]
pub struct Reserve {
    /// The record.
    pub id: RecordId,
    /// The operation's name, for operators: at most 128 bytes, no control
    /// characters.
    pub operation: String,
    /// Text for operators.
    pub label: Option<Label>,
    /// Digest of the scope.
    pub scope: Option<[u8; 32]>,
    /// Digest of the payload.
    pub fingerprint: Fingerprint,
    /// What the payload consists of.
    pub elements: Vec<Element>,
    /// The new attempt's owner token.
    pub claim: Claim,
    /// How long the attempt counts as alive without a renewal.
    pub lease_us: i64,
    /// How much later than its lease an attempt counts as lapsed.
    pub grace_us: i64,
    /// What to do with a lapsed or unknown record.
    pub takeover: Takeover,
    /// The most takeovers of one record.
    pub max_takeovers: i32,
    /// The version to apply, if the operation is ordered.
    pub version: Option<VersionBytes>,
}

/// What [`Store::reserve`] found, or won.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// The key is this claim's until the lease ends.
    Won(Won),
    /// Another attempt is running.
    InProgress {
        /// What is left of its lease and the grace.
        left_us: i64,
    },
    /// An answer is recorded.
    Completed {
        /// The answer.
        answer: Recorded,
        /// When it was recorded.
        finished_us: i64,
        /// Which attempt it is of.
        attempt: i32,
        /// How long it is still kept; none if for ever, or as long as a newer
        /// version runs.
        left_us: Option<i64>,
    },
    /// Done, but there is no answer to give back.
    Tombstone {
        /// Why.
        reason: TombstoneReason,
    },
    /// The effect may or may not have happened.
    Unknown {
        /// How the attempt ended.
        reason: UnknownReason,
        /// Whether a takeover was asked for and the limit is reached.
        exhausted: bool,
        /// When a recovery may ask again, from now.
        retry_us: Option<i64>,
    },
    /// The key stands for another payload.
    Mismatch {
        /// The labels of what differs.
        differs: Vec<String>,
    },
    /// A newer version is recorded.
    Stale {
        /// That version.
        recorded: VersionBytes,
        /// The highest version whose answer was an `Ok`, if there was one.
        applied: Option<VersionBytes>,
        /// What is recorded of it: [`Completed`](Self::Completed) or
        /// [`Tombstone`](Self::Tombstone).
        newest: Box<Self>,
    },
}

/// A won reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Won {
    /// Guards every later write, together with the claim.
    pub fence: i64,
    /// Counts attempts, from 1.
    pub attempt: i32,
    /// Whether a lapsed or unknown attempt was taken over.
    pub doubt: bool,
    /// How long the outcome has been in doubt.
    pub doubt_for_us: i64,
    /// Whether this answers a repeated request.
    pub resent: bool,
}

/// Who ends or renews an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The record.
    pub id: RecordId,
    /// The attempt's owner token.
    pub claim: Claim,
    /// The attempt's fence.
    pub fence: i64,
}

/// A request to record how the body ended.
#[derive(Debug, Clone)]
pub struct Complete {
    /// The attempt.
    pub holder: Holder,
    /// What to record.
    pub ending: Ending,
    /// How long to keep it from now; none is for ever.
    pub ttl_us: Option<i64>,
}

/// What is recorded of a body that ran to its end.
#[derive(Debug, Clone)]
pub enum Ending {
    /// An answer to replay.
    Answer(Recorded),
    /// That there is none.
    Tombstone(TombstoneReason),
}

/// A request to let the next caller run, since nothing happened.
#[derive(Debug, Clone)]
pub struct Release {
    /// The attempt.
    pub holder: Holder,
    /// How long to keep the row from now; none is for ever.
    pub ttl_us: Option<i64>,
    /// Whether this attempt's probe found that the doubtful one did nothing.
    /// Without that, releasing an attempt with doubt makes it unknown.
    pub probed: bool,
}

/// A request to say that the effect may or may not have happened.
#[derive(Debug, Clone)]
pub struct MarkUnknown {
    /// The attempt.
    pub holder: Holder,
    /// How it ended.
    pub reason: UnknownReason,
    /// Set by a recovery that got no decision: the body was not polled, so the
    /// takeover does not count, and the next probe waits this long.
    pub undecided_retry_us: Option<i64>,
}

/// A request to undo a reservation whose body was never polled.
#[derive(Debug, Clone)]
pub struct GiveBack {
    /// The record.
    pub id: RecordId,
    /// The attempt's owner token.
    pub claim: Claim,
    /// How long to keep the released row from now; none is for ever.
    pub ttl_us: Option<i64>,
}

/// How a guarded write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Done now.
    Done,
    /// Done by the same attempt before.
    AlreadyDone,
    /// Another attempt took over, or the state forbids it: nothing was written.
    Superseded,
    /// There is no such record: nothing was written.
    Gone,
}

impl Written {
    /// Returns whether the store holds what was asked for.
    #[must_use]
    pub fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::AlreadyDone)
    }
}

/// A lease to extend.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    /// The attempt.
    pub holder: Holder,
    /// Its new length from now.
    pub lease_us: i64,
}

/// A request to delete what is finished or released and past its TTL.
#[derive(Debug, Clone, Copy)]
pub struct Sweep {
    /// The most rows to delete in this batch.
    pub limit: u32,
    /// How much past its TTL a row must be.
    pub grace_us: i64,
}

/// A place for records that several processes share.
///
/// See the [module page](self) for the contract. Methods are called
/// concurrently and at any time.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// Names the kind of store for logs, such as `sqlite`.
    fn kind(&self) -> &'static str;

    /// Writes `meta` if the store has none yet, and returns what stands there.
    ///
    /// Suite topic: `meta`.
    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError>;

    /// Looks at the settings that the promise depends on.
    async fn check(&self) -> Result<Vec<Finding>, StoreError>;

    /// Returns the largest answer that the store takes, in bytes, as far as the
    /// last [`check`](Self::check) saw; none if only the engine limits it.
    fn largest_answer(&self) -> Option<usize> {
        None
    }

    /// Tells what stands under a finished record's id, if the store has it at hand
    /// and needs neither wait nor ask anybody for it:
    /// [`transition::at_hand`](crate::transition::at_hand). None says nothing.
    ///
    /// Called before [`reserve`](Self::reserve), by calls without a version, and
    /// where futures are polled: whatever may block for longer than a few
    /// microseconds belongs into `reserve`, which is asked next.
    ///
    /// Suite topic: `reserve`.
    fn at_hand(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Reserved> {
        let _ = (id, fingerprint);
        None
    }

    /// Takes the key or returns what stands there, in one atomic step:
    /// [`transition::reserve`](crate::transition::reserve).
    ///
    /// A crash after it leaves an in-progress record that lapses.
    /// Suite topics: `reserve`, `takeover`, `race`.
    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError>;

    /// Records how the body ended:
    /// [`transition::complete`](crate::transition::complete).
    ///
    /// Suite topic: `complete`.
    async fn complete(&self, request: &Complete) -> Result<Written, StoreError>;

    /// Lets the next caller run:
    /// [`transition::release`](crate::transition::release).
    ///
    /// Suite topic: `release`.
    async fn release(&self, request: &Release) -> Result<Written, StoreError>;

    /// Says that the outcome is unknown:
    /// [`transition::mark_unknown`](crate::transition::mark_unknown).
    ///
    /// Suite topic: `unknown`.
    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError>;

    /// Deletes one batch of finished and released rows past their TTL and
    /// returns how many; fewer than the limit means that none is left.
    ///
    /// Suite topic: `sweep`.
    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError>;

    /// Keeps a finished step beside its record, in one atomic step with the look
    /// at the record: [`transition::holds_steps`](crate::transition::holds_steps).
    /// A step of this label that the same attempt has kept is
    /// [`Written::AlreadyDone`], and stays.
    ///
    /// Steps end with the life of their key: no step is told any more once its
    /// record was completed, a tombstone, released, swept or settled, and a new
    /// attempt has begun ([`transition::begins_life`](crate::transition::begins_life)),
    /// whenever a process dies. A takeover begins no new life.
    ///
    /// Suite topic: `steps`. A store that does not write this lacks
    /// [`Capability::Steps`].
    async fn record_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        let _ = request;
        Err(no_steps())
    }

    /// Returns every step that this life of the key has kept, in any order;
    /// none if the record is not this attempt's any more.
    ///
    /// Suite topic: `steps`.
    async fn steps(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        let _ = holder;
        Err(no_steps())
    }

    /// Says of many records where they stand, in the order of `ids`; none of one
    /// that is absent or has expired. At most [`Standings::MOST`] ids are asked
    /// for at once, and few round trips answer them.
    ///
    /// Nothing is changed by it, and nothing may be decided on it but whom to
    /// call first: what stands there now may not stand there at the call.
    /// A store that has no way lacks [`Capability::Standings`].
    /// Suite topic: `standings`.
    async fn standings(&self, request: &Standings) -> Result<Vec<Option<Standing>>, StoreError> {
        Err(standings::lacking(request))
    }

    /// Returns the side for operators; none if the store lacks
    /// [`Capability::Admin`].
    fn admin(&self) -> Option<&dyn StoreAdmin> {
        None
    }

    /// Returns the side for calls inside of their caller's transaction; none if
    /// records of this store cannot be written there.
    fn transactional(&self) -> Option<&dyn Transactional> {
        None
    }

    /// Names what this store cannot do, so that the suite and operators know.
    fn lacks(&self) -> &'static [Capability] {
        &[
            Capability::Admin,
            Capability::ListFinished,
            Capability::Steps,
            Capability::Standings,
        ]
    }

    /// Opens the connection of the renewal thread, used for nothing else, so
    /// that no busy pool and no blocked runtime stops a renewal. Called on that
    /// thread's own runtime, and again after an error.
    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError>;
}

fn no_steps() -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, "this store keeps no steps")
}

/// The connection of the renewal thread.
///
/// Suite topics: `renew`, `give_back`.
#[async_trait]
pub trait Renewer: Send + 'static {
    /// Extends leases in one batch and says of each, in order, whether its
    /// attempt still holds the record:
    /// [`transition::renew`](crate::transition::renew).
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError>;

    /// As [`Store::mark_unknown`].
    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError>;

    /// Undoes a reservation whose body was never polled:
    /// [`transition::give_back`](crate::transition::give_back).
    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError>;
}
