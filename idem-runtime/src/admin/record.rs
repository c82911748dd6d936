//! One record, named by its call or by its id.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::settle::{Order, Settled, settle};
use super::{answer, ask, look, operators};
use crate::engine::Engine;
use crate::engine::call::Call;
use crate::error::Error;
use crate::identity::RecordId;
use crate::policy::Ttl;
use crate::record::{Note, State};
use crate::store::{Audited, Seen};
use crate::telemetry::StoreStep;
use crate::transition::Settlement;

/// How long a released record is kept unless told: its fence, which the next
/// attempt's is larger than.
const RELEASED: Duration = Duration::from_secs(86_400);

/// A record that [`Engine::record`] began to name.
#[derive(Debug)]
#[must_use = "call `key`"]
pub struct RecordBuilder {
    engine: Engine,
    call: Call,
}

impl RecordBuilder {
    pub(super) fn new(engine: &Engine, operation: Cow<'static, str>) -> Self {
        Self {
            engine: engine.clone(),
            call: Call::plain(operation),
        }
    }

    /// Sets the tenant or caller of the call.
    pub fn scope<S: Serialize + ?Sized>(mut self, scope: &S) -> Self {
        self.call = self.call.scope(scope);
        self
    }

    /// Sets the key of the call, and names its record. The key of an annotated
    /// function with `key = (a, b)` is the tuple `(a, b)`.
    pub fn key<K: Serialize + ?Sized>(self, key: &K) -> RecordRef {
        let id = self.call.key(key).record_id(&self.engine.inner);
        RecordRef::new(self.engine, id)
    }
}

/// Names one record, which need not be there.
///
/// `by` and `why` of the changes say who makes them and for what reason: both are
/// kept in the store for ever, in clear, cut to 128 and 1,024 bytes.
///
/// All methods that change give [`Error::Misuse`] if a text is blank, if the
/// store has no side for operators, or if scope or key of the call are wrong as
/// in a call; [`Error::Store`] if the store does not answer. Nothing is changed
/// then, unless the store's error is
/// [ambiguous](crate::StoreError::is_ambiguous): look at the
/// [audit](Self::audit).
#[derive(Debug, Clone)]
#[must_use = "it only names a record"]
pub struct RecordRef {
    engine: Engine,
    id: Result<RecordId, Error>,
    ttl: Option<Ttl>,
    force: bool,
    seen: Option<(i64, State)>,
}

impl RecordRef {
    pub(super) fn new(engine: Engine, id: Result<RecordId, Error>) -> Self {
        Self {
            engine,
            id,
            ttl: None,
            force: false,
            seen: None,
        }
    }

    /// Returns the record's id.
    ///
    /// # Errors
    /// What is wrong with operation, scope or key, as for a call.
    pub fn id(&self) -> Result<RecordId, Error> {
        self.id.clone()
    }

    /// Returns the record with its answer, expired or not; none if it is not
    /// there.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    ///
    /// # Errors
    /// As [`id`](Self::id); [`Error::Misuse`] if the store has no side for
    /// operators, [`Error::Store`] if it does not answer.
    ///
    /// # Panics
    /// If the store does.
    pub async fn get(&self) -> Result<Option<Seen>, Error> {
        let id = self.id()?;
        ask(&self.engine, async move |engine| look(&engine, &id).await).await
    }

    /// Returns what was changed in the record by hand, oldest first; also when it
    /// is gone.
    ///
    /// # Cancel safety
    /// Nothing is changed.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// # Panics
    /// If the store does.
    pub async fn audit(&self) -> Result<Vec<Audited>, Error> {
        let id = self.id()?;
        ask(&self.engine, async move |engine| {
            let limit = engine.limits.store_timeout;
            let audit = operators(&engine)?.audit(&id);
            Ok(engine.store_call(StoreStep::Audit, limit, audit).await?)
        })
        .await
    }

    /// Sets how long the record is kept from its settling: by default a resolved
    /// one for ever, and a released one for 24 hours. Zero is refused.
    pub fn keep(mut self, ttl: impl Into<Ttl>) -> Self {
        self.ttl = Some(ttl.into());
        self
    }

    /// Changes the record also if its attempt still holds its lease. That attempt
    /// is not stopped: its body may have an effect yet, and its end is refused as
    /// superseded.
    pub fn force(mut self) -> Self {
        self.force = true;
        self
    }

    /// Changes the record only if it still has the fence and the state with which
    /// it was seen: nobody has taken, ended or settled it since. A holder that comes
    /// back ends an attempt that was unknown under the same fence.
    pub fn seen(mut self, fence: i64, state: State) -> Self {
        self.seen = Some((fence, state));
        self
    }

    /// Records the answer of a doubtful attempt: the effect happened, and calls of
    /// its key replay this value from now on.
    ///
    /// For lapsed and unknown records, attempts that a transaction left behind,
    /// and tombstones. The answer is written by the codec
    /// [`Json`](crate::codec::Json), so the function has that one, and `T` and `E`
    /// are its own. An `Err` is replayed by functions that record their errors as
    /// they are: not under `on_error = store_text`, `unknown` or `release`.
    ///
    /// # Concurrent calls
    /// One of them is [`Settled::Done`].
    ///
    /// # Cancel safety
    /// Once begun it is done, also when the future is dropped.
    ///
    /// # Errors
    /// Those of [every change](Self), and [`Error::Misuse`] if JSON cannot give
    /// the answer back, or it is above the engine's limit.
    ///
    /// # Panics
    /// If the store or a `Serialize` does.
    ///
    /// # Examples
    /// As on the [module page](super).
    pub async fn resolve<T, E>(
        &self,
        answer: Result<T, E>,
        by: &str,
        why: &str,
    ) -> Result<Settled, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Serialize + DeserializeOwned,
    {
        let limit = self.engine.inner.limits.answer_limit;
        let answer = answer::typed(&self.id()?, &answer, limit)?;
        self.settle(Settlement::Done(answer), by, why).await
    }

    /// As [`resolve`](Self::resolve) with an `Ok`, whose JSON is recorded byte for
    /// byte. Nobody looks whether the function can read it: if it cannot, its
    /// calls get [`Error::NotReplayable`], and the record stays as it is.
    ///
    /// # Concurrent calls
    /// One of them is [`Settled::Done`].
    ///
    /// # Cancel safety
    /// Once begun it is done, also when the future is dropped.
    ///
    /// # Errors
    /// Those of [every change](Self), and [`Error::Misuse`] if `value` is not one
    /// JSON value, or above the engine's limit.
    ///
    /// # Panics
    /// If the store does.
    pub async fn resolve_json(&self, value: &str, by: &str, why: &str) -> Result<Settled, Error> {
        let limit = self.engine.inner.limits.answer_limit;
        let answer = answer::json(&self.id()?, value, limit)?;
        self.settle(Settlement::Done(answer), by, why).await
    }

    /// Says that nothing happened: the next call of the key runs the body.
    ///
    /// For the same records as [`resolve`](Self::resolve). If the effect has
    /// happened all the same, or happens yet, it happens twice.
    ///
    /// # Concurrent calls
    /// One of them is [`Settled::Done`].
    ///
    /// # Cancel safety
    /// Once begun it is done, also when the future is dropped.
    ///
    /// # Errors
    /// Those of [every change](Self).
    ///
    /// # Panics
    /// If the store does.
    pub async fn release(&self, by: &str, why: &str) -> Result<Settled, Error> {
        self.settle(Settlement::NotDone, by, why).await
    }

    /// Makes the record as if its key had never been used: any record but one
    /// whose attempt holds its lease, also an answer that is recorded, and with it
    /// the highest version that was applied. The next call runs the body, with
    /// whatever payload it has.
    ///
    /// An engine that keeps answers [in memory](crate::EngineBuilder::cache) may
    /// replay a forgotten one for as long as its
    /// [`cache_for`](crate::EngineBuilder::cache_for) says, if the record was
    /// forgotten through another engine.
    ///
    /// # Concurrent calls
    /// One of them is [`Settled::Done`].
    ///
    /// # Cancel safety
    /// Once begun it is done, also when the future is dropped.
    ///
    /// # Errors
    /// Those of [every change](Self).
    ///
    /// # Panics
    /// If the store does.
    pub async fn forget(&self, by: &str, why: &str) -> Result<Settled, Error> {
        self.settle(Settlement::Forgotten, by, why).await
    }

    async fn settle(&self, settlement: Settlement, by: &str, why: &str) -> Result<Settled, Error> {
        let note = Note::new(by, why).ok_or_else(|| {
            Error::misuse_at_start(
                "who changes a record, and why, is kept: neither text may be blank; nothing was changed",
            )
        })?;
        if self.ttl == Some(Ttl::For(Duration::ZERO)) {
            return Err(Error::misuse_at_start(
                "a record cannot be kept for no time at all: pass a longer one; nothing was changed",
            ));
        }
        let ttl = self.ttl.unwrap_or(match settlement {
            Settlement::Done(_) => Ttl::Forever,
            Settlement::NotDone | Settlement::Forgotten => Ttl::For(RELEASED),
        });
        let order = Order {
            id: self.id()?,
            settlement,
            seen: self.seen,
            force: self.force,
            ttl_us: ttl.micros(),
            note,
        };
        ask(&self.engine, async move |engine| {
            settle(&engine, order).await
        })
        .await
    }
}
