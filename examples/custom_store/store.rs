//! The store: one write transaction for each step.
//!
//! Every step is the same: begin, read the record, let
//! [`transition`] decide, write what it says, commit. redb lets one write
//! transaction be open at a time, over all processes that have the file open,
//! which is what makes the step atomic. What is decided is decided there and
//! nowhere here.
//!
//! | | |
//! |---|---|
//! | atomic primitive | a write transaction |
//! | clock | the host's, never behind the last time that was stored |
//! | durability | `Durability::Immediate`: a commit returns when it is on disk |
//! | fail-over | none: one host, a local disk |

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use idem::identity::RecordId;
use idem::record::Record;
use idem::store::{
    Complete, Finding, GiveBack, Lease, MarkUnknown, Meta, Release, Renewer, Reserve, Reserved,
    Store, Sweep, Written,
};
use idem::transition::{self, Decision};
use idem::{Clock, StoreError, StoreErrorKind};
use redb::{ConcurrencyMode, Database, Durability, ReadableTable as _, Table, TableDefinition};

use crate::row;

/// Each record by its id: its row, and the bytes of its answer.
const RECORDS: TableDefinition<'_, &[u8; 32], (&[u8], &[u8])> = TableDefinition::new("records");
/// What a sweep may delete, in the order of its expiry, so that it reads nothing
/// else.
const EXPIRING: TableDefinition<'_, (i64, &[u8; 32]), ()> = TableDefinition::new("expiring");
/// What all engines on this file agree on.
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// The last time that was stored.
const TIME: TableDefinition<'_, &str, i64> = TableDefinition::new("time");

/// Records in a file of redb. Clones share the open file.
#[derive(Clone)]
pub(crate) struct RedbStore(Arc<Shared>);

struct Shared {
    db: Database,
    clock: Box<dyn Clock>,
}

impl std::fmt::Debug for RedbStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedbStore(..)")
    }
}

/// An open write transaction's tables, and the store's time in it.
struct Step<'txn> {
    records: Table<'txn, &'static [u8; 32], (&'static [u8], &'static [u8])>,
    expiring: Table<'txn, (i64, &'static [u8; 32]), ()>,
    now_us: i64,
    /// Whether there is anything to commit.
    has_written: bool,
}

impl Step<'_> {
    fn find(&self, id: &RecordId) -> Result<Option<Record>, Failed> {
        let Some(found) = self.records.get(id.as_bytes())? else {
            return Ok(None);
        };
        let (row, answer) = found.value();
        row::read(*id, row, answer).map(Some).ok_or(Failed::Damaged)
    }

    fn write(&mut self, before: Option<&Record>, next: &Record) -> Result<(), Failed> {
        self.has_written = true;
        if let Some(at) = before.and_then(sweepable_from) {
            self.expiring.remove((at, next.id.as_bytes()))?;
        }
        if let Some(at) = sweepable_from(next) {
            self.expiring.insert((at, next.id.as_bytes()), ())?;
        }
        let row = row::write(next).ok_or(Failed::Damaged)?;
        let answer = next.answer.as_ref().map_or(&[][..], |answer| &answer.bytes);
        self.records
            .insert(next.id.as_bytes(), (row.as_slice(), answer))?;
        Ok(())
    }

    /// One decision on one record.
    fn decide<T>(
        &mut self,
        id: &RecordId,
        decide: impl FnOnce(Option<&Record>, i64) -> Decision<T>,
    ) -> Result<T, Failed> {
        let before = self.find(id)?;
        let decision = decide(before.as_ref(), self.now_us);
        if let Some(next) = &decision.write {
            self.write(before.as_ref(), next)?;
        }
        Ok(decision.reply)
    }

    fn sweep(&mut self, request: &Sweep) -> Result<u64, Failed> {
        let before = self.now_us.saturating_sub(request.grace_us);
        let mut due = Vec::new();
        for entry in self.expiring.range(..(before, &[0; 32]))? {
            if due.len() >= request.limit as usize {
                break;
            }
            let (key, _) = entry?;
            let (at, id) = key.value();
            due.push((at, *id));
        }
        for (at, id) in &due {
            self.has_written = true;
            self.expiring.remove((*at, id))?;
            self.records.remove(id)?;
        }
        Ok(due.len() as u64)
    }
}

/// When a sweep may delete a record: never while its outcome is open, nor if it
/// is what makes an older version stale.
fn sweepable_from(record: &Record) -> Option<i64> {
    record
        .expires_us
        .filter(|_| record.version_applied.is_none())
}

impl Shared {
    /// Makes one step in a transaction. An error before the commit leaves
    /// nothing behind; one of the commit itself may come too late.
    fn step<T>(
        &self,
        work: impl FnOnce(&mut Step<'_>) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let mut txn = self
            .db
            .begin_write()
            .map_err(|error| failed(&error.into()))?;
        let (reply, has_written) = self.run(&mut txn, work).map_err(|error| failed(&error))?;
        if has_written {
            // Only now may anybody be told.
            let committed = txn.commit();
            committed.map_err(|error| failed(&error.into()).ambiguous())?;
        }
        Ok(reply)
    }

    fn run<T>(
        &self,
        txn: &mut redb::WriteTransaction,
        work: impl FnOnce(&mut Step<'_>) -> Result<T, Failed>,
    ) -> Result<(T, bool), Failed> {
        txn.set_durability(Durability::Immediate)?;
        let mut time = txn.open_table(TIME)?;
        let stored = time.get("latest")?.map_or(i64::MIN, |at| at.value());
        let mut step = Step {
            records: txn.open_table(RECORDS)?,
            expiring: txn.open_table(EXPIRING)?,
            // A host's clock may step back; the store's may not.
            now_us: self.clock.unix_us().max(stored),
            has_written: false,
        };
        let reply = work(&mut step)?;
        if step.has_written {
            time.insert("latest", step.now_us)?;
        }
        Ok((reply, step.has_written))
    }
}

impl RedbStore {
    /// Opens a file, creating it if needed. All processes on it must use the
    /// same time.
    ///
    /// # Errors
    /// If the file cannot be opened or is of something else.
    pub(crate) fn open(path: impl AsRef<Path>, clock: impl Clock) -> Result<Self, StoreError> {
        let db = Database::builder()
            // A store is shared by every process that serves the operations.
            .set_concurrency_mode(ConcurrencyMode::MultiWriter)
            .create(path)
            .map_err(|error| failed(&error.into()))?;
        let clock = Box::new(clock);
        Ok(Self(Arc::new(Shared { db, clock })))
    }

    /// Makes one step where it may block: it waits for other steps and for the
    /// disk. Dropping the future does not stop it, so a caller that gave up must
    /// read that as "may have happened", which the engine does.
    async fn step<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Step<'_>) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, StoreError> {
        let shared = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || shared.step(work))
            .await
            .map_err(|_| {
                StoreError::new(StoreErrorKind::Permanent, "a step panicked").ambiguous()
            })?
    }

    /// One decision on one record, in one step.
    async fn decide<T: Send + 'static>(
        &self,
        id: RecordId,
        decide: impl FnOnce(Option<&Record>, i64) -> Decision<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.step(move |step| step.decide(&id, decide)).await
    }

    fn pin_now(&self, meta: &Meta) -> Result<Meta, Failed> {
        let txn = self.0.db.begin_write()?;
        let pinned = {
            let mut table = txn.open_table(META)?;
            let stands = table.get("meta")?.map(|bytes| bytes.value().to_vec());
            match stands {
                Some(bytes) => return row::read_meta(&bytes).ok_or(Failed::Damaged),
                None => table.insert("meta", row::write_meta(meta).as_slice())?,
            };
            meta.clone()
        };
        txn.commit()?;
        Ok(pinned)
    }
}

#[async_trait]
impl Store for RedbStore {
    fn kind(&self) -> &'static str {
        "redb"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        let (store, meta) = (self.clone(), meta.clone());
        tokio::task::spawn_blocking(move || store.pin_now(&meta).map_err(|error| failed(&error)))
            .await
            .map_err(|_| {
                StoreError::new(StoreErrorKind::Permanent, "a step panicked").ambiguous()
            })?
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        // Nothing can be set wrong: every commit is flushed.
        Ok(Vec::new())
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        let request = request.clone();
        self.decide(request.id, move |record, now_us| {
            transition::reserve(record, &request, now_us)
        })
        .await
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        let request = request.clone();
        self.decide(request.holder.id, move |record, now_us| {
            transition::complete(record, &request, now_us)
        })
        .await
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        let request = request.clone();
        self.decide(request.holder.id, move |record, now_us| {
            transition::release(record, &request, now_us)
        })
        .await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        let request = request.clone();
        self.decide(request.holder.id, move |record, now_us| {
            transition::mark_unknown(record, &request, now_us)
        })
        .await
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        let request = *request;
        self.step(move |step| step.sweep(&request)).await
    }

    // `admin`, `standings`, `lacks` and what keeps steps are left as they are: this
    // store says that it lacks a side for operators, looks at many records and
    // steps, and the suite does not run what needs them.

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        // The renewal thread has a runtime of its own, and so its own threads
        // that may block: no busy caller is in its way for longer than one step.
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Renewer for RedbStore {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        let leases = leases.to_vec();
        self.step(move |step| {
            let mut held = Vec::with_capacity(leases.len());
            for lease in &leases {
                held.push(step.decide(&lease.holder.id, |record, now_us| {
                    transition::renew(record, lease, now_us)
                })?);
            }
            Ok(held)
        })
        .await
    }

    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError> {
        Store::mark_unknown(self, request).await
    }

    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError> {
        let request = request.clone();
        self.decide(request.id, move |record, now_us| {
            transition::give_back(record, &request, now_us)
        })
        .await
    }
}

/// Why a step failed.
enum Failed {
    Redb(redb::Error),
    /// A row does not read back. It must never count as absent, which would be a
    /// second run.
    Damaged,
}

impl<E: Into<redb::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::Redb(error.into())
    }
}

/// Says what a failure means, without the driver's text, which may hold values.
fn failed(failed: &Failed) -> StoreError {
    let (kind, what) = match failed {
        Failed::Damaged => (StoreErrorKind::Permanent, "a row does not read back"),
        Failed::Redb(redb::Error::Io(_)) => (
            StoreErrorKind::Transient,
            "reading or writing the file failed",
        ),
        Failed::Redb(redb::Error::DatabaseAlreadyOpen) => (
            StoreErrorKind::Misconfigured,
            "the file is open elsewhere, for itself alone",
        ),
        Failed::Redb(redb::Error::UpgradeRequired(_)) => (
            StoreErrorKind::Misconfigured,
            "the file is of an older redb",
        ),
        Failed::Redb(_) => (StoreErrorKind::Permanent, "redb refused a step"),
    };
    StoreError::new(kind, what)
}
