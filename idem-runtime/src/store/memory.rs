//! Records in this process's memory.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;

use super::{
    Complete, Finding, GiveBack, Lease, MarkUnknown, Meta, Release, Renewer, Reserve, Reserved,
    Store, Sweep, Written,
};
use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::Record;
use crate::sync::{Arc, Mutex, lock};
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
        let now_us = self.0.clock.unix_us();
        let mut table = lock(&self.0.table);
        table.latest_us = now_us.max(table.latest_us);
        let now_us = table.latest_us;
        let current = table.records.get(id);
        let old_expiry = current.and_then(|record| record.expires_us);
        let decision = decide(current, now_us);
        if let Some(record) = decision.write {
            if let Some(at) = old_expiry {
                table.expiring.remove(&(at, *id));
            }
            if let Some(at) = record.expires_us {
                table.expiring.insert((at, *id));
            }
            table.records.insert(*id, record);
        }
        decision.reply
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
        let now_us = self.0.clock.unix_us();
        let mut guard = lock(&self.0.table);
        let table = &mut *guard;
        table.latest_us = now_us.max(table.latest_us);
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

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        Ok(Box::new(self.clone()))
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
