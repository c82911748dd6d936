//! Deciding on a record that is on a server: look, decide, and write if it is
//! still the one that was seen.
//!
//! The decision is [`transition`](crate::transition)'s, and the write names the
//! state, fence, claim and lease it was decided on. Whoever changes a record
//! changes one of these, so a decision on an old look writes nothing and is
//! made again.

use crate::backoff;
use crate::error::{StoreError, StoreErrorKind};
use crate::fault;
use crate::identity::RecordId;
use crate::record::Record;
#[cfg(any(feature = "postgres", feature = "mysql"))]
use crate::store::{Audited, Settle, Written};
use crate::store::{Reserve, Reserved, Won};
use crate::transition::{self, Decision};

/// How often a step is tried when others are in the way of it.
const TRIES: u32 = 10;

/// What a look at a key found: the store's time and the record, if any.
pub(super) struct Looked {
    pub(super) now_us: i64,
    pub(super) record: Option<Record>,
}

/// What an insertion came to.
#[expect(
    clippy::large_enum_variant,
    reason = "made once a call, and taken apart at once"
)]
pub(super) enum Inserted {
    /// The key was fresh: this is the reservation's fence.
    Won(i64),
    /// Something stood there, or has just gone.
    Found(Looked),
    /// It is finished, and this is the answer.
    #[cfg_attr(
        not(feature = "redis"),
        expect(dead_code, reason = "others find all of a record as cheaply")
    )]
    Told(Reserved),
}

/// Records on a server.
pub(super) trait Rows: Sync {
    /// Inserts a fresh record or finds what stands there, in one atomic
    /// statement.
    fn insert(
        &self,
        request: &Reserve,
    ) -> impl Future<Output = Result<Inserted, StoreError>> + Send;

    fn find(&self, id: &RecordId) -> impl Future<Output = Result<Looked, StoreError>> + Send;

    /// Writes a record over the one that was seen, in one guarded statement;
    /// false if that has changed.
    fn swap(
        &self,
        seen: &Record,
        next: &Record,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// Records with an audit beside them.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) trait AuditedRows: Rows {
    /// As [`swap`](Rows::swap), and adds an entry to the audit: both or
    /// neither.
    fn swap_audited(
        &self,
        seen: &Record,
        next: &Record,
        entry: &Audited,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// Takes the key or returns what stands there.
pub(super) async fn reserve(rows: &impl Rows, request: &Reserve) -> Result<Reserved, StoreError> {
    let mut tries = Tries::new();
    while tries.again().await {
        let looked = match rows.insert(request).await? {
            Inserted::Won(fence) => {
                fault::point("reserve-committed").await;
                return Ok(Reserved::Won(Won {
                    fence,
                    attempt: 1,
                    doubt: false,
                    doubt_for_us: 0,
                    resent: false,
                }));
            }
            Inserted::Found(looked) => looked,
            Inserted::Told(reply) => return Ok(reply),
        };
        // Gone between the two looks: absent is no answer, ask again.
        let Some(seen) = looked.record else {
            continue;
        };
        let decision = transition::reserve(Some(&seen), request, looked.now_us);
        let Some(next) = decision.write else {
            return Ok(decision.reply);
        };
        if rows.swap(&seen, &next).await? {
            fault::point("reserve-committed").await;
            return Ok(decision.reply);
        }
    }
    Err(in_the_way())
}

/// Decides on a record and writes it.
pub(super) async fn step<T>(
    rows: &impl Rows,
    id: &RecordId,
    decide: impl Fn(Option<&Record>, i64) -> Decision<T>,
) -> Result<T, StoreError> {
    let mut tries = Tries::new();
    while tries.again().await {
        let looked = rows.find(id).await?;
        let decision = decide(looked.record.as_ref(), looked.now_us);
        let (Some(next), Some(seen)) = (decision.write, looked.record) else {
            return Ok(decision.reply);
        };
        if rows.swap(&seen, &next).await? {
            return Ok(decision.reply);
        }
    }
    Err(in_the_way())
}

/// Changes a record by hand.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(super) async fn settle(
    rows: &impl AuditedRows,
    request: &Settle,
) -> Result<Written, StoreError> {
    let mut tries = Tries::new();
    while tries.again().await {
        let looked = rows.find(&request.id).await?;
        let decision = transition::settle(looked.record.as_ref(), request, looked.now_us);
        let (Some(next), Some(seen)) = (decision.write, looked.record) else {
            return Ok(decision.reply);
        };
        let entry = Audited::of(request, seen.state, looked.now_us);
        if rows.swap_audited(&seen, &next, &entry).await? {
            return Ok(decision.reply);
        }
    }
    Err(in_the_way())
}

/// Counts the tries of a step, with a growing pause between them.
pub(super) struct Tries(u32);

impl Tries {
    pub(super) fn new() -> Self {
        Self(0)
    }

    /// Waits for the next try; false if there were enough.
    pub(super) async fn again(&mut self) -> bool {
        if self.0 > 0 {
            tokio::time::sleep(backoff::jittered(self.0) / 8).await;
        }
        self.0 += 1;
        self.0 <= TRIES
    }
}

pub(super) fn in_the_way() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "other sessions kept changing the same record",
    )
}
