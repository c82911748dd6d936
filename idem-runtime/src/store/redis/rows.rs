//! Looking at records and writing over them.

use super::fields::{Fields, Hash};
use super::scripts::{self, Script};
use super::{RedisStore, number, time_us};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::{Record, State};
use crate::store::swap::{self, Inserted, Looked};
use crate::store::{Audited, Reserve, Settle};
use crate::transition;

/// How long the server keeps a record past its TTL, by its own clock: it only
/// cleans up, and what counts is decided before.
const SLACK_MS: i64 = 60_000;

/// For how long the server keeps what has this TTL.
pub(super) fn keep_ms(ttl_us: i64) -> i64 {
    ttl_us / 1_000 + SLACK_MS
}

/// The records, and the script that writes over them.
pub(super) struct Rows<'a> {
    store: &'a RedisStore,
    write: &'a Script,
    settle: Option<&'a Settle>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(store: &'a RedisStore, write: &'a Script) -> Self {
        Self {
            store,
            write,
            settle: None,
        }
    }

    /// Each write adds an entry to the audit.
    pub(super) fn settling(mut self, request: &'a Settle) -> Self {
        self.settle = Some(request);
        self
    }

    fn looked(&self, id: &RecordId, time: &str, flat: Vec<Vec<u8>>) -> Result<Looked, StoreError> {
        Ok(Looked {
            now_us: time_us(time)?,
            record: Hash::of_flat(flat).record(id)?,
        })
    }
}

impl swap::Rows for Rows<'_> {
    async fn insert(&self, request: &Reserve) -> Result<Inserted, StoreError> {
        let keys = &self.store.shared.keys;
        let mut args = self.store.time_args();
        args.push(request.id.as_bytes().to_vec());
        args.push(number(Some(request.lease_us.max(0))));
        // What it is like needs no time; when it is, the script knows.
        if let Some(fresh) = transition::reserve(None, request, 0).write {
            Fields::of(&fresh)
                .without(&["fence", "started", "lease"])
                .append_to(&mut args);
        }
        let of = [
            keys.record(&request.id),
            keys.open_of(&request.id),
            keys.steps(&request.id),
        ];
        let (time, fence, flat): (String, Option<i64>, Vec<Vec<u8>>) =
            self.store.run(&scripts::INSERT, &of, &args).await?;
        let looked = self.looked(&request.id, &time, flat)?;
        Ok(fence.map_or(Inserted::Found(looked), Inserted::Won))
    }

    async fn find(&self, id: &RecordId) -> Result<Looked, StoreError> {
        let of = [self.store.shared.keys.record(id)];
        let args = self.store.time_args();
        let (time, _, flat): (String, Option<i64>, Vec<Vec<u8>>) =
            self.store.run(&scripts::FIND, &of, &args).await?;
        self.looked(id, &time, flat)
    }

    async fn swap(&self, seen: &Record, next: &Record) -> Result<bool, StoreError> {
        let keys = &self.store.shared.keys;
        let is_open = matches!(next.state, State::InProgress | State::Unknown);
        let audited = self.settle.map(|settle| {
            let at_us = next.finished_us.unwrap_or(next.started_us);
            super::admin::write_audited(&Audited::of(settle, seen.state, at_us))
        });
        let mut args = vec![
            number(Some(seen.state.code())),
            number(Some(seen.fence)),
            seen.claim.as_bytes().to_vec(),
            number(seen.lease_until_us),
            next.id.as_bytes().to_vec(),
            number(Some(u8::from(is_open))),
            number(kept_ms(next)),
            audited.unwrap_or_default(),
        ];
        Fields::of(next).append_to(&mut args);
        let of = [
            keys.record(&next.id),
            keys.open_of(&next.id),
            keys.audit(&next.id),
            keys.steps(&next.id),
        ];
        self.store.run(self.write, &of, &args).await
    }
}

/// For how long the server keeps a record that was just written; none is for
/// ever. Forgetting that we do not know would be a second run.
fn kept_ms(record: &Record) -> Option<i64> {
    let ends = matches!(
        record.state,
        State::Released | State::Completed | State::Tombstone
    );
    // The highest version applied is what makes a late message stale.
    if !ends || record.version_applied.is_some() {
        return None;
    }
    let ttl_us = record.expires_us?.saturating_sub(record.finished_us?);
    Some(keep_ms(ttl_us.max(0)))
}
