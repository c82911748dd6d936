//! Records in Redis, on one server or on a cluster.
//!
//! A record is a hash. Each step is one script on its key: a reservation inserts
//! or reads in one trip; what stands there is then decided by [`transition`],
//! and a change is written only if the record is still the one that was seen
//! (state, fence, claim and lease), else it is looked at again. On one server a
//! plain command goes in front of the reservation, in the same trip, and reads
//! what a replay tells: that is cheaper by half than a script that does.
//!
//! | | |
//! |---|---|
//! | atomic primitive | a script on one key and the index of its bucket |
//! | trips: first, replay, takeover | 1, 1, 2 |
//! | trips: over what was released; over what has expired | 2; 3, on a cluster 2 |
//! | trips: another payload than the recorded one | 2, on a cluster 1 |
//! | clock | the server's `TIME`; microseconds, of a master's own on a cluster |
//! | durability | that of `appendfsync always`; **a fail-over can forget an acknowledged reservation** |
//! | isolation needed | none: scripts run one by one |
//! | largest answer | the engine's limit; a large one stops other clients while it is copied, so at most 256 KiB is recommended |
//! | versions tested | 7.0 |
//!
//! # What it is good for
//!
//! Replication is asynchronous: a replica that takes over may not know of the
//! last reservations, and their bodies run again. Send
//! [`downstream_key`](crate::Context::downstream_key) or compare
//! [`fence`](crate::Context::fence) where that would be a second charge, or use a
//! database.
//!
//! A server must flush each write (`appendonly yes`, `appendfsync always`) and
//! evict nothing (`maxmemory-policy noeviction`); the engine does not start on
//! another one unless that is accepted by name.
//!
//! # Memory
//!
//! When memory is exhausted, reservations are refused and no body runs. Answers
//! are recorded and leases renewed all the same, and what is recorded is
//! replayed.
//!
//! The server deletes finished and released records by itself, a minute after
//! their TTL; records of ordered operations, of a TTL `forever`, in progress or
//! unknown stay. So there is nothing to [`sweep`](Store::sweep) and no list of
//! what is finished.

mod admin;
mod check;
mod clustered;
mod connection;
mod error;
mod fields;
mod front;
mod keys;
mod options;
mod renewer;
mod rows;
mod scripts;
mod single;
mod standings;
mod steps;
mod together;

use std::fmt;

use async_trait::async_trait;
use redis::{FromRedisValue, Value};

use self::connection::{Connection, Source};
use self::error::{is_out_of_memory, unreadable};
use self::fields::Fields;
use self::keys::Keys;
pub use self::options::RedisOptions;
use self::rows::{Rows as RedisRows, keep_ms};
use self::scripts::Script;
use super::{
    Capability, Complete, Ending, Finding, Holder, Lease, MarkUnknown, Meta, RecordStep, Release,
    Renewer, Reserve, Reserved, Standings, Step, Store, StoreAdmin, Sweep, Written,
};
use crate::clock::Clock;
use crate::error::StoreError;
use crate::fault;
use crate::record::{Standing, State};
use crate::store::sql::{damaged, fixed};
use crate::store::swap::{self, Rows as _};
use crate::sync::Arc;
use crate::transition;

/// A store in Redis; see the [module page](self).
///
/// Clones share the connection.
#[derive(Clone)]
pub struct RedisStore {
    connection: Connection,
    shared: Arc<Shared>,
}

struct Shared {
    source: Source,
    keys: Keys,
    clock: Option<Arc<dyn Clock>>,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: its URL may have a password.
        f.debug_struct("RedisStore")
            .field("cluster", &self.connection.is_cluster())
            .field("keys", &self.shared.keys)
            .finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects to a URL, with the default options: see
    /// [`RedisOptions::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the URL is not valid, or the server does not answer.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options().connect(url).await
    }

    /// Returns the options to open a store with.
    pub fn options() -> RedisOptions {
        RedisOptions::new()
    }

    /// Runs a script and reads its reply.
    async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[Vec<u8>],
        args: &[impl AsRef<[u8]>],
    ) -> Result<T, StoreError> {
        let reply: Value = self.connection.run(script, keys, args).await?;
        T::from_redis_value(reply).map_err(|_| unreadable())
    }

    /// The first argument of a script that asks for the time.
    fn time_args(&self) -> Vec<Vec<u8>> {
        vec![number(self.clock_us())]
    }

    /// The time of a test's clock.
    fn clock_us(&self) -> Option<i64> {
        self.shared.clock.as_ref().map(|clock| clock.unix_us())
    }

    fn ends(&self) -> RedisRows<'_> {
        RedisRows::new(self, &scripts::END)
    }

    /// Ends an attempt if it is the holder's to end.
    async fn end(&self, request: &Complete) -> Result<bool, StoreError> {
        let (state, reason, answer) = match &request.ending {
            Ending::Answer(answer) => (State::Completed, None, Some(answer)),
            Ending::Tombstone(reason) => (State::Tombstone, Some(reason.code()), None),
        };
        let mut fields = Fields::default();
        fields.put_number("state", Some(state.code()));
        fields.put_number("doubt", Some(0));
        fields.put_number("reason", reason);
        fields.put_answer(answer);

        let holder = &request.holder;
        let keys = &self.shared.keys;
        let applies = answer.is_some_and(|answer| !answer.failed);
        // The arithmetic of scripts knows no negative numbers: it is over.
        let ttl_us = request.ttl_us.map(|ttl| ttl.max(0));
        let mut args = self.time_args();
        args.extend([
            holder.id.as_bytes().to_vec(),
            holder.claim.as_bytes().to_vec(),
            number(Some(holder.fence)),
            number(ttl_us),
            number(ttl_us.map(keep_ms)),
            number(Some(u8::from(applies))),
        ]);
        fields.append_to(&mut args);
        let of = [
            keys.record(&holder.id),
            keys.open_of(&holder.id),
            keys.steps(&holder.id),
        ];
        self.run(&scripts::COMPLETE, &of, &args).await
    }

    /// Extends a lease if it is the holder's.
    async fn extend(&self, lease: &Lease) -> Result<bool, StoreError> {
        let holder = &lease.holder;
        let mut args = self.time_args();
        args.extend([
            holder.claim.as_bytes().to_vec(),
            number(Some(holder.fence)),
            number(Some(lease.lease_us.max(0))),
        ]);
        let of = [self.shared.keys.record(&holder.id)];
        self.run(&scripts::RENEW, &of, &args).await
    }
}

/// Reads the time that a script told.
fn time_us(time: &str) -> Result<i64, StoreError> {
    time.parse().map_err(|_| damaged("time"))
}

/// A number as an argument of a script; none is empty.
fn number(number: Option<impl ToString>) -> Vec<u8> {
    number.map_or_else(Vec::new, |number| number.to_string().into_bytes())
}

#[async_trait]
impl Store for RedisStore {
    fn kind(&self) -> &'static str {
        if self.connection.is_cluster() {
            "redis-cluster"
        } else {
            "redis"
        }
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        let args = [
            meta.format.as_bytes().to_vec(),
            meta.instance.to_vec(),
            meta.secret_check.to_vec(),
        ];
        let keys = [self.shared.keys.meta()];
        let (format, instance, secret_check): (Option<String>, Vec<u8>, Vec<u8>) =
            self.run(&scripts::PIN, &keys, &args).await?;
        Ok(Meta {
            format: format.ok_or_else(|| damaged("format"))?,
            instance: fixed(instance, "instance")?,
            secret_check: fixed(secret_check, "secret check")?,
        })
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        check::findings(&self.connection).await
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        let rows = RedisRows::new(self, &scripts::TAKE);
        let refused = match swap::reserve(&rows, request).await {
            Err(error) if is_out_of_memory(&error) => error,
            reserved => return reserved,
        };
        // Nothing can begin; what needs no write is answered all the same.
        let looked = rows.find(&request.id).await?;
        let Some(record) = &looked.record else {
            return Err(refused);
        };
        let decision = transition::reserve(Some(record), request, looked.now_us);
        match decision.write {
            None => Ok(decision.reply),
            Some(_) => Err(refused),
        }
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        if self.end(request).await? {
            fault::point("complete-committed").await;
            return Ok(Written::Done);
        }
        // Not this holder's any more, or done before: the record tells.
        swap::step(&self.ends(), &request.holder.id, |current, now_us| {
            transition::complete(current, request, now_us)
        })
        .await
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        swap::step(&self.ends(), &request.holder.id, |current, now_us| {
            transition::release(current, request, now_us)
        })
        .await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        swap::step(&self.ends(), &request.holder.id, |current, now_us| {
            transition::mark_unknown(current, request, now_us)
        })
        .await
    }

    /// Deletes nothing: the server does, by itself.
    async fn sweep(&self, _: &Sweep) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn record_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        self.keep_step(request).await
    }

    async fn steps(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        self.steps_of(holder).await
    }

    async fn standings(&self, request: &Standings) -> Result<Vec<Option<Standing>>, StoreError> {
        self.stand(request).await
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }

    fn lacks(&self) -> &'static [Capability] {
        &[
            Capability::ListFinished,
            Capability::SteadyClock,
            Capability::Sweep,
        ]
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        let renewer = renewer::RedisRenewer::open(self).await?;
        Ok(Box::new(renewer))
    }
}
