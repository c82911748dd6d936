//! Looking at records and writing over them.

use redis::{FromRedisValue as _, Pipeline, Value};

use super::connection::Connection;
use super::error::unreadable;
use super::fields::{Fields, GLANCE, Hash};
use super::scripts::{self, Script};
use super::single::Single;
use super::{RedisStore, number, time_us};
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::{Record, State};
use crate::store::sql::write_elements;
use crate::store::swap::{self, Inserted, Looked, Rows as _};
use crate::store::{Audited, Reserve, Reserved, Settle};
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

    /// Reserves behind a glance, in one trip. A script that reads a record copies
    /// each of its fields into Lua and out again: for what is finished a plain
    /// command is a third of the cost, and so the script says nothing of it.
    ///
    /// The script alone decides whether the key is taken. The glance only tells
    /// what was recorded, and only if that is all that this call asks for.
    async fn insert_behind_glance(
        &self,
        single: &Single,
        request: &Reserve,
        keys: &[Vec<u8>; 3],
        args: &[&[u8]],
        clock_us: Option<i64>,
    ) -> Result<Inserted, StoreError> {
        let glance = |all: &mut Pipeline| {
            all.cmd("HMGET").arg(&keys[0]).arg(GLANCE);
            if clock_us.is_none() {
                all.cmd("TIME");
            }
        };
        let (glance, reply) = single
            .run_behind(glance, &scripts::INSERT, keys, args)
            .await?;
        if reply != Value::Nil {
            return read_inserted(&request.id, reply);
        }
        match told(request, clock_us, glance) {
            Some(reply) => Ok(Inserted::Told(reply)),
            None => self.find(&request.id).await.map(Inserted::Found),
        }
    }
}

/// Reads what the script of a reservation told.
fn read_inserted(id: &RecordId, reply: Value) -> Result<Inserted, StoreError> {
    if let Value::BulkString(fence) = &reply {
        let fence = std::str::from_utf8(fence).map_err(|_| unreadable())?;
        return time_us(fence).map(Inserted::Won);
    }
    read_looked(id, reply).map(Inserted::Found)
}

fn read_looked(id: &RecordId, reply: Value) -> Result<Looked, StoreError> {
    let (time, flat): (String, Vec<Vec<u8>>) =
        <_>::from_redis_value(reply).map_err(|_| unreadable())?;
    Ok(Looked {
        now_us: time_us(&time)?,
        record: Hash::of_flat(flat).record(id)?,
    })
}

/// The answer to a reservation whose record was finished at a glance; none if it
/// takes the whole record to tell, or it was not finished yet.
fn told(request: &Reserve, clock_us: Option<i64>, glance: Vec<Value>) -> Option<Reserved> {
    let mut glance = glance.into_iter();
    let values = Vec::from_redis_value(glance.next()?).ok()?;
    let record = Hash::named(GLANCE, values).finished(&request.id).ok()??;
    let now_us = match clock_us {
        Some(now_us) => now_us,
        None => {
            let (seconds, rest): (i64, i64) = <_>::from_redis_value(glance.next()?).ok()?;
            seconds.checked_mul(1_000_000)?.checked_add(rest)?
        }
    };
    let decision = transition::reserve(Some(&record), request, now_us);
    let is_told = matches!(
        decision.reply,
        Reserved::Completed { .. } | Reserved::Tombstone { .. }
    );
    (is_told && decision.write.is_none()).then_some(decision.reply)
}

impl swap::Rows for Rows<'_> {
    async fn insert(&self, request: &Reserve) -> Result<Inserted, StoreError> {
        let keys = &self.store.shared.keys;
        let of = [
            keys.record(&request.id),
            keys.open_of(&request.id),
            keys.steps(&request.id),
        ];
        // Versions decide by more than a glance shows.
        let single = match &self.store.connection {
            Connection::Single(single) if request.version.is_none() => Some(single),
            _ => None,
        };
        let clock_us = self.store.clock_us();
        let clock = number(clock_us);
        let lease = number(Some(request.lease_us.max(0)));
        let elements = write_elements(&request.elements);
        let mut args = vec![
            clock.as_slice(),
            request.id.as_bytes(),
            &lease,
            if single.is_some() { b"1" } else { b"0" },
            request.operation.as_bytes(),
            request.fingerprint.as_bytes(),
            &elements,
            request.claim.as_bytes(),
        ];
        if let Some(label) = &request.label {
            args.extend([b"label".as_slice(), label.as_str().as_bytes()]);
        }
        if let Some(scope) = &request.scope {
            args.extend([b"scope".as_slice(), scope]);
        }
        if let Some(version) = &request.version {
            args.extend([b"v_running".as_slice(), version.as_bytes()]);
        }
        match single {
            Some(single) => {
                self.insert_behind_glance(single, request, &of, &args, clock_us)
                    .await
            }
            None => {
                let reply = self.store.run(&scripts::INSERT, &of, &args).await?;
                read_inserted(&request.id, reply)
            }
        }
    }

    async fn find(&self, id: &RecordId) -> Result<Looked, StoreError> {
        let of = [self.store.shared.keys.record(id)];
        let args = self.store.time_args();
        read_looked(id, self.store.run(&scripts::FIND, &of, &args).await?)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Fingerprint;
    use crate::record::{Claim, Recorded, TombstoneReason, VersionBytes};
    use crate::store::Takeover;

    const NOW: i64 = 1_000;

    fn request() -> Reserve {
        Reserve {
            id: RecordId::from_bytes([7; 32]),
            operation: "told".to_owned(),
            label: None,
            scope: None,
            fingerprint: Fingerprint::from_bytes([1; 32]),
            elements: Vec::new(),
            claim: Claim::from_bytes([1; 16]),
            lease_us: 30,
            grace_us: 10,
            takeover: Takeover::Rerun,
            max_takeovers: 3,
            version: None,
        }
    }

    fn finished(state: State, expires_us: Option<i64>) -> Record {
        let fresh = transition::reserve(None, &request(), 100).write.unwrap();
        let completed = state == State::Completed;
        Record {
            state,
            claim: Claim::from_bytes([9; 16]),
            attempt: 2,
            lease_until_us: None,
            finished_us: Some(200),
            expires_us,
            reason: (!completed).then_some(TombstoneReason::Withheld.code()),
            answer: completed.then(|| Recorded::new(&fresh.id, "json", true, vec![0, 255, b'\n'])),
            ..fresh
        }
    }

    fn glance(record: &Record) -> Vec<Value> {
        let mut flat = Vec::new();
        Fields::of(record).append_to(&mut flat);
        let value = |name: &&str| {
            let at = flat.chunks(2).find(|pair| pair[0] == name.as_bytes());
            at.map_or(Value::Nil, |pair| Value::BulkString(pair[1].clone()))
        };
        let time = ["0", "001000"].map(|part| Value::BulkString(part.into()));
        vec![
            Value::Array(GLANCE.iter().map(value).collect()),
            Value::Array(time.into()),
        ]
    }

    /// What a glance tells is what all of the record would.
    fn told_at_a_glance(record: &Record, request: &Reserve) -> Option<Reserved> {
        let told = told(request, None, glance(record));
        assert_eq!(told, super::told(request, Some(NOW), glance(record)));
        if let Some(reply) = &told {
            let whole = transition::reserve(Some(record), request, NOW);
            assert_eq!((reply, None), (&whole.reply, whole.write));
        }
        told
    }

    #[test]
    fn what_is_finished_is_told_at_a_glance() {
        for state in [State::Completed, State::Tombstone] {
            for expires in [None, Some(NOW + 1), Some(i64::MAX)] {
                for claim in [[0; 16], [1; 16], [9; 16]] {
                    let claim = Claim::from_bytes(claim);
                    let request = Reserve { claim, ..request() };
                    let record = finished(state, expires);
                    assert!(told_at_a_glance(&record, &request).is_some(), "{record:?}");
                }
            }
        }
    }

    #[test]
    fn what_takes_more_than_a_glance_is_looked_at() {
        let plain = finished(State::Completed, Some(NOW + 1));
        let other = Fingerprint::from_bytes([2; 32]);
        let version = VersionBytes::new(vec![1]);
        let looked_at = [
            finished(State::Completed, Some(NOW - 1)),
            finished(State::Tombstone, Some(i64::MIN)),
            Record {
                fingerprint: other,
                ..plain.clone()
            },
            Record {
                state: State::InProgress,
                lease_until_us: Some(NOW),
                version_recorded: version,
                ..plain.clone()
            },
            Record {
                state: State::Unknown,
                ..plain.clone()
            },
            Record {
                state: State::Released,
                ..plain.clone()
            },
            Record {
                finished_us: None,
                ..plain.clone()
            },
        ];
        for record in &looked_at {
            assert_eq!(told_at_a_glance(record, &request()), None, "{record:?}");
        }
        let nothing = vec![Value::Array(vec![Value::Nil; GLANCE.len()])];
        assert_eq!(told(&request(), Some(NOW), nothing), None);
        assert_eq!(told(&request(), Some(NOW), vec![Value::Nil]), None);
        assert_eq!(told(&request(), Some(NOW), Vec::new()), None);
        let without_time = glance(&plain).into_iter().take(1).collect();
        assert_eq!(told(&request(), None, without_time), None);
    }
}
