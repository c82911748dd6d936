//! Records from code: what is stuck, why, and settling it.
//!
//! [`Engine::admin`] lists, finds and counts; [`Engine::record`] and
//! [`Admin::record`] name one record, to look at it and to change it by hand.
//! The command `idem` and its page are written on this module alone.
//!
//! A change by hand is one atomic step of the store, guarded by the record's
//! fence, so that it never meets another state than the one that it was decided
//! on, and a holder that wakes later is refused. Who made it, when and why is
//! kept in the store for ever, in clear, in the same step.
//!
//! # Concurrency
//! Everything here may be called at any time from any process. Of two changes of
//! one record that meet, one is [`Settled::Done`], and the other says what it
//! found.
//!
//! # Cancel safety
//! Once begun, a question or a change goes on in a task of its own, also when
//! its future is dropped.
//!
//! # Examples
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use idem::admin::{Filter, Settled};
//! use idem::record::Standing;
//! use idem::{Engine, Error, on_error};
//!
//! let engine = Engine::builder(idem::store::MemoryStore::new()).build().await?;
//! let charge = || {
//!     let call = engine.call("payments.charge", &"o-7", Duration::from_secs(3_600));
//!     call.on_error(on_error::Unknown)
//! };
//! let timed_out = Error::Failed { message: "the provider did not answer".to_owned() };
//! assert!(charge().run(async { Err::<u64, _>(timed_out) }).await.is_err());
//!
//! let stuck = engine.admin()?.list(&Filter::new(Standing::Unknown)).await?;
//! let record = engine.record("payments.charge").key(&"o-7");
//! assert_eq!(stuck.records[0].id, record.id()?);
//!
//! // Found out: the provider has made the charge.
//! let answer = Ok::<u64, Error>(4_200);
//! let settled = record.resolve(answer, "ada@example.com", "in the provider's log").await?;
//! assert_eq!(settled, Settled::Done);
//! assert_eq!(charge().run(async { Ok::<u64, Error>(0) }).await?, 4_200);
//! # Ok(()) }
//! ```

mod answer;
mod find;
mod list;
mod observe;
mod record;
mod settle;

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::find::Found;
pub use self::list::{Filter, Listing};
pub use self::record::{RecordBuilder, RecordRef};
pub use self::settle::Settled;
use crate::clock::micros;
use crate::engine::{Engine, Inner};
pub use crate::engine::{Reconcile, Reconciled, Sweeper, Swept, Unknown};
use crate::error::Error;
use crate::identity::RecordId;
use crate::record::Standing;
use crate::store::{Count, Counts, Seen, StoreAdmin};
use crate::sync::Arc;
use crate::telemetry::StoreStep;

/// The side for operators of an engine's store; see the [module page](self).
///
/// `Clone` and cheap.
#[derive(Debug, Clone)]
pub struct Admin {
    engine: Engine,
}

impl Engine {
    /// Returns the side for operators: every record of the store, of all
    /// namespaces in it.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the store has no such side.
    pub fn admin(&self) -> Result<Admin, Error> {
        operators(&self.inner)?;
        Ok(Admin {
            engine: self.clone(),
        })
    }

    /// Names the record of a call of `operation`, in this engine's namespace.
    ///
    /// Scope and key are those of the call, and mean the same record; mistakes in
    /// them are told when the record is asked for.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
    /// let call = engine.call("payments.charge", &("o-7", 1), Duration::from_secs(60));
    /// call.scope(&"tenant-3").run(async { Ok::<u64, idem::Error>(4_200) }).await?;
    ///
    /// let record = engine.record("payments.charge").scope(&"tenant-3").key(&("o-7", 1));
    /// let seen = record.get().await?.ok_or("not there")?;
    /// assert_eq!(seen.record.attempt, 1);
    /// # Ok(()) }
    /// ```
    pub fn record(&self, operation: impl Into<Cow<'static, str>>) -> RecordBuilder {
        RecordBuilder::new(self, operation.into())
    }

    /// Records by hand how a doubtful attempt ended, as
    /// [`RecordRef::resolve`] with its defaults.
    ///
    /// # Concurrent calls
    /// One of them is [`Settled::Done`].
    ///
    /// # Cancel safety
    /// Once begun it is done, also when the future is dropped.
    ///
    /// # Errors
    /// As [`RecordRef::resolve`].
    ///
    /// # Panics
    /// As [`RecordRef::resolve`].
    pub async fn resolve<T, E>(
        &self,
        id: RecordId,
        answer: Result<T, E>,
        by: &str,
        why: &str,
    ) -> Result<Settled, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Serialize + DeserializeOwned,
    {
        let record = self.admin()?.record(id);
        record.resolve(answer, by, why).await
    }
}

impl Admin {
    /// Returns one page of the records that stand where `filter` says, in the
    /// order of their ids and without their answers.
    ///
    /// Records that change while pages are read may be missed or shown twice.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Store`] if the store does not answer, or keeps no list of records
    /// that stand there, as Redis of finished ones.
    ///
    /// # Panics
    /// If the store does.
    pub async fn list(&self, filter: &Filter) -> Result<Listing, Error> {
        let filter = filter.clone();
        ask(&self.engine, async move |engine| {
            list::list(&engine, &filter).await
        })
        .await
    }

    /// Finds a record by the first digits of its id, 4 to 64, as logs and errors
    /// show them.
    ///
    /// All 64 find it by itself, expired or not. Fewer look through the records
    /// of each standing, expired ones left out, which may read much of a large
    /// store; and finished ones are not among them on a store that keeps no list
    /// of those, as Redis.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Misuse`] if these are no such digits, [`Error::Store`] if the
    /// store does not answer.
    ///
    /// # Panics
    /// If the store does.
    pub async fn find(&self, digits: &str) -> Result<Found, Error> {
        let digits = find::Digits::new(digits)?;
        ask(&self.engine, async move |engine| {
            find::find(&engine, &digits).await
        })
        .await
    }

    /// Counts records; with `finished` also those that have ended, which may read
    /// all of them.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    ///
    /// # Errors
    /// [`Error::Store`] if the store does not answer.
    ///
    /// # Panics
    /// If the store does.
    pub async fn counts(&self, finished: bool) -> Result<Counts, Error> {
        ask(&self.engine, async move |engine| {
            let request = Count {
                grace_us: micros(engine.limits.grace),
                finished,
            };
            let limit = engine.limits.store_timeout;
            let counted = operators(&engine)?.count(&request);
            Ok(engine.store_call(StoreStep::Count, limit, counted).await?)
        })
        .await
    }

    /// Returns where a record stood when it was looked at, by this engine's
    /// grace; none if it had expired, which counts as absent.
    #[must_use]
    pub fn standing(&self, seen: &Seen) -> Option<Standing> {
        let grace_us = micros(self.engine.inner.limits.grace);
        seen.record.standing(seen.now_us, grace_us)
    }

    /// Names a record by its id.
    pub fn record(&self, id: RecordId) -> RecordRef {
        RecordRef::new(self.engine.clone(), Ok(id))
    }
}

/// Asks the store, out of reach of the caller's cancellation.
async fn ask<T, W, F>(engine: &Engine, work: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: FnOnce(Arc<Inner>) -> W,
    W: Future<Output = Result<T, Error>> + Send + 'static,
{
    engine
        .inner
        .detached(work(Arc::clone(&engine.inner)))
        .await?
}

fn operators(engine: &Inner) -> Result<&dyn StoreAdmin, Error> {
    engine.store.admin().ok_or_else(|| {
        Error::misuse_at_start(
            "this store has no side for operators, so that no record can be listed or settled; nothing was changed",
        )
    })
}

/// Looks at one record.
async fn look(engine: &Inner, id: &RecordId) -> Result<Option<Seen>, Error> {
    let limit = engine.limits.store_timeout;
    let looked = operators(engine)?.get(id);
    Ok(engine.store_call(StoreStep::Look, limit, looked).await?)
}
