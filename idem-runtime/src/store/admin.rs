//! What operators may ask of a store, and settle in it.

use std::fmt::Debug;

use async_trait::async_trait;

use super::Written;
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::{Note, Record, Standing, State};
use crate::transition::Settlement;

/// A request for one page of records.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Where they stand. Expired records count as absent and are never shown.
    pub standing: Standing,
    /// Of this operation only.
    pub operation: Option<String>,
    /// How much later than its lease an attempt counts as lapsed.
    pub grace_us: i64,
    /// The last record of the page before; none for the first page.
    pub after: Option<RecordId>,
    /// The most records to return, at least 1.
    pub limit: u32,
}

/// One page of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The store's time when it looked.
    pub now_us: i64,
    /// In the order of their ids, without their answers.
    pub records: Vec<Record>,
    /// What to send as [`Scan::after`] for the next page; none if this was the
    /// last. A page may be empty and not the last.
    pub next: Option<RecordId>,
}

/// One record, as it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The store's time when it looked.
    pub now_us: i64,
    /// The record, with its answer. It may have expired.
    pub record: Record,
}

/// A request to change a record by hand.
#[derive(Debug, Clone)]
pub struct Settle {
    /// The record.
    pub id: RecordId,
    /// The fence it was seen with: one that has changed since is left alone.
    pub fence: i64,
    /// The state it was seen in, if another one is to be left alone: a holder that comes back ends
    /// an attempt that was unknown under the same fence. None is any.
    pub state: Option<State>,
    /// What to make of it.
    pub settlement: Settlement,
    /// Also if its attempt still holds its lease. That attempt's end is then
    /// refused as superseded.
    pub force: bool,
    /// How long to keep it from now; none is for ever. Of no meaning to
    /// [`Settlement::Forgotten`].
    pub ttl_us: Option<i64>,
    /// How much later than its lease an attempt counts as lapsed.
    pub grace_us: i64,
    /// Who settles it, and why: kept in the audit.
    pub note: Note,
}

/// A change that was made by hand. It is kept for ever, also when its record
/// is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// When, by the store's clock.
    pub at_us: i64,
    /// The record's state before.
    pub was: State,
    /// The record's fence before.
    pub fence: i64,
    /// What was made of it: [`Settlement::code`].
    pub became: i16,
    /// Whether it was forced.
    pub forced: bool,
    /// Who and why.
    pub note: Note,
}

impl Audited {
    /// What a request that is done at `at_us` adds to the audit.
    #[must_use]
    pub fn of(request: &Settle, was: State, at_us: i64) -> Self {
        Self {
            at_us,
            was,
            fence: request.fence,
            became: request.settlement.code(),
            forced: request.force,
            note: request.note.clone(),
        }
    }
}

/// A request to count.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// How much later than its lease an attempt counts as lapsed.
    pub grace_us: i64,
    /// Whether to count finished records too, which may read all of them.
    pub finished: bool,
}

/// How many records there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// The store's time when it looked.
    pub now_us: i64,
    /// Attempts within lease and grace.
    pub in_progress: u64,
    /// Attempts past both.
    pub lapsed: u64,
    /// Outcomes in doubt.
    pub unknown: u64,
    /// When the oldest attempt, lapsed or not, was reserved.
    pub oldest_started_us: Option<i64>,
    /// Since when the oldest unknown outcome is in doubt.
    pub oldest_unknown_us: Option<i64>,
    /// Finished and released records, expired ones until they are swept; if it
    /// was asked for and the store can tell.
    pub finished: Option<u64>,
}

/// A store's side for operators: what is stuck, why, and settling it.
///
/// Records are looked at and changed as everywhere: the store's clock decides,
/// and a change is one atomic step with its entry in the audit.
///
/// Suite topic: `admin`.
#[async_trait]
pub trait StoreAdmin: Debug + Send + Sync {
    /// Returns a page of records that stand where it is asked for.
    ///
    /// Records that change while pages are read may be missed or shown twice;
    /// one that does not is shown once.
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError>;

    /// Returns one record, expired or not.
    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError>;

    /// Changes a record by hand:
    /// [`transition::settle`](crate::transition::settle). What is
    /// [`Written::Done`] is in the audit, and nothing else is.
    ///
    /// Sent again after a lost reply it is [`Written::Superseded`], since the
    /// fence has changed.
    async fn settle(&self, request: &Settle) -> Result<Written, StoreError>;

    /// Returns what was changed by hand in a record, oldest first.
    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError>;

    /// Counts records.
    async fn count(&self, request: &Count) -> Result<Counts, StoreError>;
}
