//! Asking the outside world about records in doubt, without waiting for a caller.
//!
//! 1. A pass reads the unknown and lapsed records of one operation, from a random
//!    place on, so that those in front do not starve the others.
//! 2. Each is taken over before it is asked about, by the reservation of a caller
//!    under `recover`: a new claim and fence, counted and backed off as there.
//! 3. What the probe found is settled as by an operator, guarded by the fence of
//!    the attempt that asked: the one write of a store that keeps who and why in
//!    the same step.

mod candidates;
mod probe;
mod take;
mod verdict;

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use serde::de::DeserializeOwned;

use self::candidates::Candidates;
pub use self::probe::Unknown;
use self::probe::ask;
use self::take::take;
use self::verdict::{Ended, Terms, settle};
use super::call::is_name;
use super::{Engine, Inner};
use crate::error::Error;
use crate::policy::{Recovered, Ttl};
use crate::sync::Arc;

/// How many records are looked at for each that may be asked about: many may
/// have to wait for their next probe.
const LOOKS: u64 = 100;

/// A pass over the doubtful records of an operation, from [`Engine::reconcile`].
#[derive(Debug)]
#[must_use = "call `run`"]
pub struct Reconcile<P> {
    engine: Engine,
    operation: Cow<'static, str>,
    probe: P,
    limit: u32,
    by: Cow<'static, str>,
    ttl: Option<Ttl>,
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Reconciled {
    /// Records whose effect was found: their answers are replayed from now on.
    pub done: u64,
    /// Records released, since nothing had happened: the next caller runs.
    pub not_done: u64,
    /// Records asked about without a decision.
    pub unknown: u64,
    /// Records that were not asked about, since it was too early to ask again,
    /// their takeovers are used up, or others have taken or settled them; or
    /// that others have settled meanwhile.
    pub skipped: u64,
    /// Whether the pass ended before it had seen every record.
    pub more: bool,
}

impl Engine {
    /// Asks the outside world about the unknown and lapsed records of an
    /// operation, and records what it says: for a background task, so that no
    /// caller has to come and wait for it.
    ///
    /// `probe` gets each [`Unknown`] record, one after the other, and says what
    /// follows. It may borrow: write `async |unknown| …`, without `move`.
    ///
    /// | it says | then |
    /// |---|---|
    /// | `Ok(Recovered::Done(answer))` | the answer is recorded, and replayed to every caller |
    /// | `Ok(Recovered::NotDone)` | the record is released: the next caller runs the body |
    /// | `Ok(Recovered::Unknown)`, `Err`, a panic, more time than `max_run` | the record stays unknown, and is asked about again later |
    ///
    /// The answer is written by the codec [`Json`](crate::codec::Json), so it has
    /// the type of the function's `Ok`, and the function has that codec. One that
    /// JSON cannot give back makes the record a tombstone, as a call's would.
    /// Errors and panics of the probe go nowhere: let it log what it wants known.
    ///
    /// This does not ask what the function's own `on_unknown` is. Records that a
    /// transaction left behind (`tx`) are asked about, too.
    ///
    /// # What is promised
    /// - A record is asked about inside of a new attempt of it, with a new claim
    ///   and fence, taken before the probe. Its lease is renewed while the probe
    ///   runs, and callers that come meanwhile wait, as for any attempt.
    /// - Nobody else asks at the same time: of several processes one takes each
    ///   record.
    /// - Probes of one record wait for a third of the lease at first and for five
    ///   minutes at most. `max_takeovers` counts as for callers: a record whose
    ///   takeovers are used up is left to people.
    /// - An old holder that comes back is refused by the store. It can still act
    ///   outside after the probe looked: a single effect needs
    ///   [`downstream_key`](Unknown::downstream_key) or a fence as well.
    /// - What was settled is in the [audit](crate::admin::RecordRef::audit), with
    ///   who (`reconcile`), when and why; as forced, since the attempt that asked
    ///   holds its lease. The exception is an answer that became a tombstone.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
    /// use idem::{Error, Recovered};
    ///
    /// # let charge = || engine.call("payments.charge", &7, Duration::from_secs(60))
    /// #     .on_error(idem::on_error::Unknown);
    /// # let failed = Error::Failed { message: "no answer".to_owned() };
    /// # charge().run(async { Err::<u64, _>(failed) }).await.unwrap_err();
    /// # let find = async |key: String| (key.len() == 64).then_some(4_200);
    /// // Once a minute, say; `find` asks the provider for a charge by its key.
    /// let pass = engine.reconcile("payments.charge", async |unknown| {
    ///     Ok::<_, Error>(match find(unknown.downstream_key("charge")).await {
    ///         Some(amount) => Recovered::Done(amount),
    ///         None => Recovered::NotDone,
    ///     })
    /// });
    /// let reconciled = pass.run().await?;
    /// assert_eq!(reconciled.done, 1);
    /// # assert_eq!(charge().run(async { Ok::<u64, Error>(0) }).await?, 4_200);
    /// # Ok(()) }
    /// ```
    pub fn reconcile<T, E, P, F>(
        &self,
        operation: impl Into<Cow<'static, str>>,
        probe: P,
    ) -> Reconcile<P>
    where
        P: FnMut(Unknown) -> F,
        F: Future<Output = Result<Recovered<T>, E>>,
    {
        Reconcile {
            engine: self.clone(),
            operation: operation.into(),
            probe,
            limit: 100,
            by: Cow::Borrowed("reconcile"),
            ttl: None,
        }
    }
}

impl<P> Reconcile<P> {
    /// Sets how many records the pass asks about, at least 1; by default 100. It
    /// looks at a hundred times as many at most.
    pub fn limit(mut self, records: u32) -> Self {
        self.limit = records.max(1);
        self
    }

    /// Sets how long a settled record is kept: by default an answer for ever, and
    /// a released record for 24 hours. Zero is refused. Records do not tell the
    /// TTL of their function.
    pub fn keep(mut self, ttl: impl Into<Ttl>) -> Self {
        self.ttl = Some(ttl.into());
        self
    }

    /// Sets who is named in the audit, by default `reconcile`; kept in clear, cut
    /// to 128 bytes.
    pub fn by(mut self, who: impl Into<Cow<'static, str>>) -> Self {
        self.by = who.into();
        self
    }

    /// Makes the pass.
    ///
    /// # Concurrent calls
    /// Of several passes, in one process or many, one asks about each record.
    ///
    /// # Cancel safety
    /// Dropped while a probe runs, that record stays unknown, and is asked about
    /// again after the pause. What has been said already is recorded.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the operation's name is none, `by` is blank, the store
    /// has no side for operators, or there is no runtime; [`Error::ShuttingDown`];
    /// [`Error::Store`] if the store does not answer. What was settled before that
    /// stays settled.
    ///
    /// # Panics
    /// If the store or a `Serialize` does.
    pub async fn run<T, E, F>(mut self) -> Result<Reconciled, Error>
    where
        P: FnMut(Unknown) -> F,
        F: Future<Output = Result<Recovered<T>, E>>,
        T: Serialize + DeserializeOwned,
    {
        let engine = Arc::clone(&self.engine.inner);
        let terms = self.check()?;
        let mut candidates = Candidates::new(&self.operation)?;
        let mut reconciled = Reconciled::default();
        let mut taken = HashSet::new();
        let mut left = self.limit;
        let mut looks = u64::from(self.limit).saturating_mul(LOOKS);
        while let Some(page) = candidates.next(&engine).await? {
            for record in page.records {
                if left == 0 || looks == 0 || engine.is_closing() {
                    reconciled.more = true;
                    return Ok(reconciled);
                }
                looks -= 1;
                // Lapsed when it was taken, and unknown now.
                if taken.contains(&record.id) {
                    continue;
                }
                if !take::may_take(&engine, &record, page.now_us) {
                    reconciled.skipped += 1;
                    continue;
                }
                taken.insert(record.id);
                let since_us = take::since_us(&record);
                let Some(attempt) = take(&engine, record, terms.released_us).await? else {
                    reconciled.skipped += 1;
                    continue;
                };
                left -= 1;
                let verdict = ask(&attempt, since_us, &mut self.probe).await;
                reconciled.add(settle(attempt, verdict, &terms).await?);
            }
        }
        Ok(reconciled)
    }

    /// Looks for mistakes before anything is asked.
    fn check(&self) -> Result<Terms, Error> {
        let engine = &self.engine.inner;
        let wrong = |what: &str| Err(Error::misuse_at_start(format!("{what}; nothing was asked")));
        if !is_name(&self.operation) {
            return wrong("an operation's name has 1 to 128 bytes and no control characters");
        }
        if self.ttl == Some(Ttl::For(std::time::Duration::ZERO)) {
            return wrong("a record cannot be kept for no time at all: pass a longer one");
        }
        if engine.store.admin().is_none() {
            return wrong("this store has no side for operators, so that no record can be found");
        }
        if engine.runtime().is_none() {
            return wrong(
                "there is no tokio runtime: call from inside one, or build the engine inside one",
            );
        }
        if engine.is_closing() {
            return Err(Error::ShuttingDown);
        }
        match Terms::new(&self.by, self.ttl) {
            Some(terms) => Ok(terms),
            None => wrong("who reconciles is kept: `by` may not be blank"),
        }
    }
}

impl Reconciled {
    fn add(&mut self, ended: Ended) {
        match ended {
            Ended::Done => self.done += 1,
            Ended::NotDone => self.not_done += 1,
            Ended::Unknown => self.unknown += 1,
            Ended::Superseded => self.skipped += 1,
        }
    }
}
