//! The side for operators.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::fields::{Hash, WITHOUT_ANSWER};
use super::rows::Rows;
use super::together::together;
use super::{RedisStore, number, scripts, time_us};
use crate::error::{StoreError, StoreErrorKind};
use crate::identity::RecordId;
use crate::record::{Note, Record, Standing, State};
use crate::store::sql::{damaged, fixed};
use crate::store::swap::{self, Rows as _};
use crate::store::{Audited, Count, Counts, Page, Scan, Seen, Settle, StoreAdmin, Written};
use crate::transition;

/// Buckets to look into at once.
const BUCKETS: usize = 32;
/// The most records to read at once.
const BATCH: usize = 200;
/// The most records to read for one page: few may stand where it is asked for.
const PAGE: usize = 5_000;

impl RedisStore {
    /// Returns the ids of some open records behind `after`, in order; none if
    /// there are no more.
    async fn open_ids(&self, after: Option<RecordId>) -> Result<Vec<RecordId>, StoreError> {
        let first = after.map_or(0, |after| after.as_bytes()[0]);
        let buckets: Vec<u8> = (first..=u8::MAX).collect();
        for some in buckets.chunks(BUCKETS) {
            let looks = some.iter().map(|&bucket| {
                let store = self.clone();
                async move { store.open_in(bucket, after).await }
            });
            let mut ids = together(looks).await?.concat();
            if !ids.is_empty() {
                ids.truncate(BATCH);
                return Ok(ids);
            }
        }
        Ok(Vec::new())
    }

    async fn open_in(
        &self,
        bucket: u8,
        after: Option<RecordId>,
    ) -> Result<Vec<RecordId>, StoreError> {
        let from = match after {
            Some(after) if after.as_bytes()[0] == bucket => {
                [b"(".as_slice(), after.as_bytes()].concat()
            }
            _ => b"-".to_vec(),
        };
        let keys = [self.shared.keys.open(bucket)];
        let args = [from, number(Some(BATCH))];
        let ids: Vec<Vec<u8>> = self.run(&scripts::OPEN, &keys, &args).await?;
        ids.into_iter()
            .map(|id| Ok(RecordId::from_bytes(fixed(id, "id")?)))
            .collect()
    }

    /// Reads records without their answers, and the store's time.
    async fn look(&self, ids: &[RecordId]) -> Result<(i64, Vec<Record>), StoreError> {
        let mut buckets: BTreeMap<u8, Vec<RecordId>> = BTreeMap::new();
        for id in ids {
            buckets.entry(id.as_bytes()[0]).or_default().push(*id);
        }
        let looks = buckets.into_values().map(|ids| {
            let store = self.clone();
            async move { store.look_in(&ids).await }
        });
        let mut now_us = 0;
        let mut records = Vec::with_capacity(ids.len());
        for (at_us, some) in together(looks).await? {
            now_us = at_us.max(now_us);
            records.extend(some);
        }
        Ok((now_us, records))
    }

    async fn look_in(&self, ids: &[RecordId]) -> Result<(i64, Vec<Record>), StoreError> {
        let keys: Vec<_> = ids.iter().map(|id| self.shared.keys.record(id)).collect();
        let (time, found) = self.fields(&keys).await?;
        let mut records = Vec::with_capacity(ids.len());
        for (id, values) in ids.iter().zip(found) {
            records.extend(Hash::named(WITHOUT_ANSWER, values).record(id)?);
        }
        Ok((time_us(&time)?, records))
    }

    async fn fields(
        &self,
        keys: &[Vec<u8>],
    ) -> Result<(String, Vec<Vec<Option<Vec<u8>>>>), StoreError> {
        let mut args = self.time_args();
        args.extend(WITHOUT_ANSWER.iter().map(|name| name.as_bytes().to_vec()));
        self.run(&scripts::LOOK, keys, &args).await
    }

    async fn now_us(&self) -> Result<i64, StoreError> {
        let (time, _) = self.fields(&[self.shared.keys.meta()]).await?;
        time_us(&time)
    }
}

#[async_trait]
impl StoreAdmin for RedisStore {
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError> {
        if !request.standing.is_open() {
            return Err(StoreError::new(
                StoreErrorKind::Misconfigured,
                "Redis keeps no list of finished records; ask for one by its id",
            ));
        }
        let limit = request.limit.max(1) as usize;
        let mut page = Page {
            now_us: self.now_us().await?,
            records: Vec::new(),
            next: None,
        };
        let mut after = request.after;
        let mut read = 0;
        loop {
            let ids = self.open_ids(after).await?;
            let Some(&last) = ids.last() else {
                return Ok(page);
            };
            let (now_us, records) = self.look(&ids).await?;
            page.now_us = now_us;
            page.records.extend(records.into_iter().filter(|record| {
                let wanted = request.operation.as_ref();
                record.standing(now_us, request.grace_us) == Some(request.standing)
                    && wanted.is_none_or(|operation| record.operation == *operation)
            }));
            // One more than asked for shows that there is a next page.
            if page.records.len() > limit {
                page.records.truncate(limit);
                page.next = page.records.last().map(|record| record.id);
                return Ok(page);
            }
            read += ids.len();
            if read >= PAGE {
                page.next = Some(last);
                return Ok(page);
            }
            after = Some(last);
        }
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError> {
        let looked = self.ends().find(id).await?;
        let now_us = looked.now_us;
        Ok(looked.record.map(|record| Seen { now_us, record }))
    }

    async fn settle(&self, request: &Settle) -> Result<Written, StoreError> {
        let rows = Rows::new(self, &scripts::END).settling(request);
        swap::step(&rows, &request.id, |current, now_us| {
            transition::settle(current, request, now_us)
        })
        .await
    }

    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError> {
        let keys = [self.shared.keys.audit(id)];
        let entries: Vec<Vec<u8>> = self.run(&scripts::AUDIT, &keys, &[""; 0]).await?;
        entries.iter().map(|entry| read_audited(entry)).collect()
    }

    async fn count(&self, request: &Count) -> Result<Counts, StoreError> {
        let mut counts = Counts {
            now_us: self.now_us().await?,
            ..Counts::default()
        };
        let mut after = None;
        loop {
            let ids = self.open_ids(after).await?;
            let Some(&last) = ids.last() else {
                return Ok(counts);
            };
            let (now_us, records) = self.look(&ids).await?;
            counts.now_us = now_us;
            for record in records {
                add(&mut counts, &record, request.grace_us);
            }
            after = Some(last);
        }
    }
}

fn add(counts: &mut Counts, record: &Record, grace_us: i64) {
    let oldest = |at: Option<i64>, new: i64| Some(at.map_or(new, |at| at.min(new)));
    match record.standing(counts.now_us, grace_us) {
        Some(Standing::InProgress) => counts.in_progress += 1,
        Some(Standing::Lapsed) => counts.lapsed += 1,
        Some(Standing::Unknown) => {
            counts.unknown += 1;
            let since = record.since_us.unwrap_or(record.started_us);
            counts.oldest_unknown_us = oldest(counts.oldest_unknown_us, since);
            return;
        }
        // It has ended since its id was read.
        _ => return,
    }
    counts.oldest_started_us = oldest(counts.oldest_started_us, record.started_us);
}

/// An entry as text, readable without this library.
type Entry = (i64, i16, i64, i16, bool, String, String);

pub(super) fn write_audited(entry: &Audited) -> Vec<u8> {
    let entry: Entry = (
        entry.at_us,
        entry.was.code(),
        entry.fence,
        entry.became,
        entry.forced,
        entry.note.by().to_owned(),
        entry.note.why().to_owned(),
    );
    // Numbers and texts have no way to fail.
    serde_json::to_vec(&entry).unwrap_or_default()
}

fn read_audited(entry: &[u8]) -> Result<Audited, StoreError> {
    let unreadable = || damaged("audit");
    let (at_us, was, fence, became, forced, by, why): Entry =
        serde_json::from_slice(entry).map_err(|_| unreadable())?;
    Ok(Audited {
        at_us,
        was: State::from_code(was).ok_or_else(unreadable)?,
        fence,
        became,
        forced,
        note: Note::new(&by, &why).ok_or_else(unreadable)?,
    })
}
