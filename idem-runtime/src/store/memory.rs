//! Records in this process's memory.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;

use super::{
    Audited, Capability, Complete, Count, Counts, Finding, GiveBack, Holder, Lease, MarkUnknown,
    Meta, Page, RecordStep, Release, Renewer, Reserve, Reserved, Scan, Seen, Settle, Standings,
    Step, Store, StoreAdmin, Sweep, Written,
};
use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;
use crate::identity::{Fingerprint, RecordId};
use crate::record::{Record, Standing};
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use crate::transition::{self, Decision};

/// A store for tests and single-process tools: it ends with the process.
///
/// | | |
/// |---|---|
/// | atomic primitive | one mutex around a map |
/// | clock | the operating system's, or the one given; microseconds |
/// | durability, fail-over | none |
/// | largest answer | the engine's limit |
///
/// Clones share the same records.
#[derive(Debug, Clone)]
pub struct MemoryStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    meta: Option<Meta>,
    records: HashMap<RecordId, Record>,
    /// What has an expiry, in its order, so that a sweep reads no other row.
    expiring: BTreeSet<(i64, RecordId)>,
    audit: Vec<(RecordId, Audited)>,
    /// Steps of open records, each with the fence of its attempt.
    steps: HashMap<RecordId, Vec<(i64, Step)>>,
    /// The largest time given out: the clock may step back, time may not.
    latest_us: i64,
}

impl MemoryStore {
    /// Creates an empty store on the operating system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock)
    }

    /// Creates an empty store on the given clock.
    #[must_use]
    pub fn with_clock(clock: impl Clock) -> Self {
        Self(Arc::new(Shared {
            clock: Arc::new(clock),
            table: Mutex::default(),
        }))
    }

    /// Returns a copy of a record, for tests.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn record(&self, id: &RecordId) -> Option<Record> {
        lock(&self.0.table).records.get(id).cloned()
    }

    /// Returns how many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.0.table).records.len()
    }

    /// Returns whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs one atomic step on one record.
    fn step<T>(
        &self,
        id: &RecordId,
        decide: impl FnOnce(Option<&Record>, i64) -> Decision<T>,
    ) -> T {
        self.table().step(id, decide)
    }

    /// Locks the table, with its time brought up to date.
    fn table(&self) -> MutexGuard<'_, Table> {
        let now_us = self.0.clock.unix_us();
        let mut table = lock(&self.0.table);
        table.latest_us = now_us.max(table.latest_us);
        table
    }
}

impl Table {
    fn step<T>(
        &mut self,
        id: &RecordId,
        decide: impl FnOnce(Option<&Record>, i64) -> Decision<T>,
    ) -> T {
        let current = self.records.get(id);
        let old_expiry = current.and_then(|record| record.expires_us);
        let decision = decide(current, self.latest_us);
        if let Some(record) = decision.write {
            if let Some(at) = old_expiry {
                self.expiring.remove(&(at, *id));
            }
            if let Some(at) = record.expires_us {
                self.expiring.insert((at, *id));
            }
            if transition::ends_life(&record) {
                self.steps.remove(id);
            }
            self.records.insert(*id, record);
        }
        decision.reply
    }

    fn record_step(&mut self, request: &RecordStep) -> Written {
        let holder = &request.holder;
        let held = transition::holds_steps(self.records.get(&holder.id), holder);
        if held != Written::Done {
            return held;
        }
        let kept = self.steps.entry(holder.id).or_default();
        let is_kept = |(fence, step): &(i64, Step)| {
            *fence == holder.fence && step.label == request.step.label
        };
        if kept.iter().any(is_kept) {
            return Written::AlreadyDone;
        }
        kept.push((holder.fence, request.step.clone()));
        Written::Done
    }

    fn steps(&self, holder: &Holder) -> Option<Vec<Step>> {
        if transition::holds_steps(self.records.get(&holder.id), holder) != Written::Done {
            return None;
        }
        let kept = self.steps.get(&holder.id).into_iter().flatten();
        Some(kept.map(|(_, step)| step.clone()).collect())
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn kind(&self) -> &'static str {
        "memory"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        let mut table = lock(&self.0.table);
        Ok(table.meta.get_or_insert_with(|| meta.clone()).clone())
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        Ok(vec![Finding::NotShared])
    }

    fn at_hand(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Reserved> {
        let table = self.table();
        transition::at_hand(table.records.get(id)?, fingerprint, table.latest_us)
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        Ok(self.step(&request.id, |current, now| {
            transition::reserve(current, request, now)
        }))
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        Ok(self.step(&request.holder.id, |current, now| {
            transition::complete(current, request, now)
        }))
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        Ok(self.step(&request.holder.id, |current, now| {
            transition::release(current, request, now)
        }))
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        Ok(self.step(&request.holder.id, |current, now| {
            transition::mark_unknown(current, request, now)
        }))
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        let mut guard = self.table();
        let table = &mut *guard;
        let mut due = Vec::new();
        for &(at, id) in &table.expiring {
            if due.len() >= request.limit as usize
                || at >= table.latest_us.saturating_sub(request.grace_us)
            {
                break;
            }
            let sweepable = table
                .records
                .get(&id)
                .is_some_and(|record| record.is_sweepable(table.latest_us, request.grace_us));
            if sweepable {
                due.push((at, id));
            }
        }
        for entry in &due {
            table.expiring.remove(entry);
            table.records.remove(&entry.1);
        }
        if table.records.capacity() > 64 && table.records.len() < table.records.capacity() / 4 {
            table.records.shrink_to_fit();
        }
        Ok(u64::try_from(due.len()).unwrap_or(u64::MAX))
    }

    async fn record_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        Ok(self.table().record_step(request))
    }

    async fn steps(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        Ok(self.table().steps(holder))
    }

    async fn standings(&self, request: &Standings) -> Result<Vec<Option<Standing>>, StoreError> {
        let table = self.table();
        let stands = |id| {
            let record = table.records.get(id)?;
            record.standing(table.latest_us, request.grace_us)
        };
        Ok(request.ids.iter().map(stands).collect())
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }

    fn lacks(&self) -> &'static [Capability] {
        &[]
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl StoreAdmin for MemoryStore {
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError> {
        let table = self.table();
        let now_us = table.latest_us;
        let mut found: Vec<&Record> = table
            .records
            .values()
            .filter(|record| record.standing(now_us, request.grace_us) == Some(request.standing))
            .filter(|record| request.after.is_none_or(|after| record.id > after))
            .filter(|record| {
                let wanted = request.operation.as_ref();
                wanted.is_none_or(|operation| record.operation == *operation)
            })
            .collect();
        found.sort_by_key(|record| record.id);
        let limit = request.limit.max(1) as usize;
        let more = found.len() > limit;
        found.truncate(limit);
        Ok(Page {
            now_us,
            next: found.last().filter(|_| more).map(|record| record.id),
            records: found
                .into_iter()
                .map(|record| Record {
                    answer: None,
                    ..record.clone()
                })
                .collect(),
        })
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError> {
        let table = self.table();
        let now_us = table.latest_us;
        let record = table.records.get(id).cloned();
        Ok(record.map(|record| Seen { now_us, record }))
    }

    async fn settle(&self, request: &Settle) -> Result<Written, StoreError> {
        let mut table = self.table();
        let was = table.records.get(&request.id).map(|record| record.state);
        let written = table.step(&request.id, |current, now| {
            transition::settle(current, request, now)
        });
        if let (Written::Done, Some(was)) = (written, was) {
            let entry = Audited::of(request, was, table.latest_us);
            table.audit.push((request.id, entry));
        }
        Ok(written)
    }

    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError> {
        let table = self.table();
        let of_id = table.audit.iter().filter(|(of, _)| of == id);
        Ok(of_id.map(|(_, entry)| entry.clone()).collect())
    }

    async fn count(&self, request: &Count) -> Result<Counts, StoreError> {
        let table = self.table();
        let now_us = table.latest_us;
        let mut counts = Counts {
            now_us,
            finished: request.finished.then_some(0),
            ..Counts::default()
        };
        for record in table.records.values() {
            let standing = record.standing(now_us, request.grace_us);
            let oldest = |at: Option<i64>, new: i64| Some(at.map_or(new, |at| at.min(new)));
            match standing {
                Some(Standing::InProgress) => counts.in_progress += 1,
                Some(Standing::Lapsed) => counts.lapsed += 1,
                Some(Standing::Unknown) => {
                    counts.unknown += 1;
                    let since = record.since_us.unwrap_or(record.started_us);
                    counts.oldest_unknown_us = oldest(counts.oldest_unknown_us, since);
                }
                _ => counts.finished = counts.finished.map(|finished| finished + 1),
            }
            if matches!(standing, Some(Standing::InProgress | Standing::Lapsed)) {
                counts.oldest_started_us = oldest(counts.oldest_started_us, record.started_us);
            }
        }
        Ok(counts)
    }
}

#[async_trait]
impl Renewer for MemoryStore {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        Ok(leases
            .iter()
            .map(|lease| {
                self.step(&lease.holder.id, |current, now| {
                    transition::renew(current, lease, now)
                })
            })
            .collect())
    }

    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError> {
        Store::mark_unknown(self, request).await
    }

    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError> {
        Ok(self.step(&request.id, |current, now| {
            transition::give_back(current, request, now)
        }))
    }
}
