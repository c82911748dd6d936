//! The engine: reserve, run, complete, replay.

pub(crate) mod attempt;
mod builder;
mod cache;
pub(crate) mod call;
pub(crate) mod conclude;
pub(crate) mod driver;
mod enter;
mod operations;
mod plain;
mod reconcile;
#[cfg(feature = "testing")]
pub(crate) mod rehearsal;
pub(crate) mod renewal;
pub(crate) mod site;
pub(crate) mod steps;
mod sweep;
mod sweeper;
pub(crate) mod tracker;
mod waiting;
mod within;

use std::time::Duration;

use serde::Serialize;
use tokio::runtime::Handle;
use tracing::Instrument as _;
use tracing::instrument::WithSubscriber as _;

pub use self::builder::EngineBuilder;
use self::operations::Operations;
pub use self::plain::PlainCall;
pub use self::reconcile::{Reconcile, Reconciled, Unknown};
use self::renewal::Renewals;
pub use self::sweeper::{Sweeper, Swept};
use self::tracker::Tracker;
pub use self::within::TxCall;
use crate::clock::Clock;
use crate::context;
use crate::error::{Error, StoreError};
use crate::identity::Identity;
use crate::policy::Ttl;
use crate::singleflight::Flights;
use crate::store::Store;
use crate::sync::{Arc, AtomicBool, Notify, Ordering};
use crate::telemetry::{self, StoreStep};

/// The longest time after which asking again is recommended while a holder
/// renews its lease.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);

static INSTALLED: std::sync::OnceLock<Engine> = std::sync::OnceLock::new();

/// Runs each key's body once, and replays its answer.
///
/// `Clone` and cheap: clones are the same engine. An annotated function finds
/// its engine in this order: `engine = expr`, the task's engine
/// ([`scope`](Self::scope)), the installed one ([`install`]).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use idem::store::MemoryStore;
/// use idem::Engine;
///
/// let engine = Engine::builder(MemoryStore::new()).namespace("shop").build().await?;
/// let ttl = Duration::from_secs(3600);
/// let charge = async || -> Result<u32, idem::Error> {
///     engine.call("payments.charge", &("m-1", "o-7"), ttl).run(async { Ok(42) }).await
/// };
/// assert_eq!(charge().await?, 42);
/// assert_eq!(charge().await?, 42); // replayed: the second body was not polled
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) identity: Identity,
    /// The instance id of the store, as it was pinned.
    pub(crate) instance: [u8; 16],
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) flights: Arc<Flights>,
    /// Finished answers; none unless it was asked for.
    cache: Option<cache::Cache>,
    pub(crate) renewals: Renewals,
    #[cfg(feature = "testing")]
    pub(crate) rehearsal: rehearsal::Rehearsal,
    pub(crate) operations: Operations,
    /// Reservations that were won and have not ended.
    pub(crate) attempts: Tracker,
    /// Tasks that were spawned and have not ended.
    pub(crate) tasks: Tracker,
    /// Calls that wait for another attempt.
    pub(crate) waiters: Tracker,
    closing: AtomicBool,
    /// Wakes who waits for that.
    closed: Notify,
    /// Set when `shutdown` returns: no body begins after that.
    drained: AtomicBool,
    /// Where tasks go when a call is polled outside of any runtime.
    runtime: Option<Handle>,
}

/// What the builder decided.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) lease: Duration,
    pub(crate) grace: Duration,
    pub(crate) max_run: Duration,
    pub(crate) max_takeovers: i32,
    pub(crate) answer_limit: usize,
    pub(crate) store_timeout: Duration,
    pub(crate) reserve_timeout: Duration,
    pub(crate) max_waiters: usize,
    pub(crate) strict: bool,
}

/// How spawned work ended.
pub(crate) enum Spawned<O> {
    Done(O),
    Panicked(crate::panic::Panic),
    /// It gave nothing, or its runtime ended.
    Gone,
}

impl Inner {
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Waits until no further calls are accepted.
    async fn closed(&self) {
        let mut closed = std::pin::pin!(self.closed.notified());
        // Listen first, look second: no wake-up is lost between.
        closed.as_mut().enable();
        if !self.is_closing() {
            closed.await;
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.drained.load(Ordering::SeqCst)
    }

    /// Returns the runtime to spawn on: the current one, or the one in which
    /// the engine was built.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        Handle::try_current().ok().or_else(|| self.runtime.clone())
    }

    /// Spawns work at once, out of reach of the caller's cancellation, in the
    /// caller's span, with the caller's engine and held keys. The returned
    /// future may be dropped.
    pub(crate) fn spawn<O, W>(&self, work: W) -> impl Future<Output = Spawned<O>> + Send + use<O, W>
    where
        O: Send + 'static,
        W: Future<Output = Option<O>> + Send + 'static,
    {
        let tracked = self.tasks.track();
        let work = context::carry(tracked, work)
            .instrument(tracing::Span::current())
            .with_current_subscriber();
        let handle = self.runtime().map(|runtime| runtime.spawn(work));
        async move {
            let Some(handle) = handle else {
                return Spawned::Gone;
            };
            match handle.await {
                Ok(Some(done)) => Spawned::Done(done),
                Ok(None) => Spawned::Gone,
                Err(error) => error
                    .try_into_panic()
                    .map_or(Spawned::Gone, Spawned::Panicked),
            }
        }
    }

    /// Does work that the caller's cancellation does not reach. A panic of the
    /// store's goes on in the caller.
    pub(crate) async fn detached<T, W>(&self, work: W) -> Result<T, Error>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        match self.spawn(async move { Some(work.await) }).await {
            Spawned::Done(done) => Ok(done),
            Spawned::Panicked(panic) => std::panic::resume_unwind(panic),
            Spawned::Gone => Err(Error::ShuttingDown),
        }
    }

    /// Makes one store call with a bound, and measures it.
    pub(crate) async fn store_call<T>(
        &self,
        step: StoreStep,
        limit: Duration,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let started = self.clock.monotonic();
        let answer = conclude::bounded(limit, call).await;
        telemetry::store_call(
            step,
            self.clock.monotonic().saturating_sub(started),
            &answer,
        );
        answer
    }
}

impl Engine {
    /// Starts to build an engine on a store.
    pub fn builder(store: impl Store) -> EngineBuilder {
        EngineBuilder::new(Arc::new(store))
    }

    /// Finds the engine of a call.
    pub(crate) fn find(given: Option<&Self>) -> Result<Self, Error> {
        given
            .cloned()
            .or_else(context::scoped_engine)
            .or_else(|| INSTALLED.get().cloned())
            .ok_or(Error::NoEngine)
    }

    /// Starts a call without an annotated function. Its defaults are those of
    /// the attribute.
    ///
    /// `operation` is the stable name, 1 to 128 bytes; `key` what makes two
    /// calls the same intent; `ttl` how long the answer is kept.
    pub fn call<K: Serialize + ?Sized>(
        &self,
        operation: impl Into<std::borrow::Cow<'static, str>>,
        key: &K,
        ttl: impl Into<Ttl>,
    ) -> PlainCall {
        PlainCall::new(self, operation.into(), key, ttl.into())
    }

    /// Makes this the engine of every annotated call inside `future`, also of
    /// those in bodies that it runs in tasks of their own.
    ///
    /// # Cancel safety
    /// As `future`.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        context::with_engine(self.clone(), future)
    }

    /// Returns what the engine has running.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            attempts: self.inner.attempts.count(),
            waiters: self.inner.waiters.count(),
            tasks: self.inner.tasks.count(),
            flights: self.inner.flights.len(),
        }
    }

    /// Accepts no further calls, waits up to `deadline` for bodies to end and
    /// their answers to be recorded, and marks the rest unknown.
    ///
    /// Call it after the server has stopped accepting requests, and before the
    /// runtime ends. No body begins after it has returned. One that still runs
    /// goes on until its runtime ends, and its answer is recorded if it comes.
    ///
    /// # Concurrent calls
    /// A second call waits too.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the engine closed; nothing is marked.
    ///
    /// # Errors
    /// None at present.
    pub async fn shutdown(&self, deadline: Duration) -> Result<Drained, Error> {
        self.inner.closing.store(true, Ordering::SeqCst);
        self.inner.closed.notify_waiters();
        let idle = async {
            // One may end in the other: a task that reserves, in an attempt.
            while self.inner.attempts.count() + self.inner.tasks.count() > 0 {
                self.inner.attempts.idle().await;
                self.inner.tasks.idle().await;
            }
        };
        let drained = tokio::time::timeout(deadline, idle).await.is_ok();
        self.inner.drained.store(true, Ordering::SeqCst);
        let unknown = if drained {
            0
        } else {
            self.inner.renewals.shut_down().await
        };
        telemetry::drained(unknown);
        Ok(Drained { unknown })
    }
}

/// What an engine has running; all zero when it is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Reservations that were won and have not ended.
    pub attempts: usize,
    /// Calls that wait for another attempt.
    pub waiters: usize,
    /// Spawned tasks that have not ended.
    pub tasks: usize,
    /// Keys that callers of this process share a trip to the store for.
    pub flights: usize,
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// How many attempts had not ended by the deadline and were marked unknown.
    pub unknown: usize,
}

/// Makes an engine the process's default.
///
/// # Errors
/// [`Error::Misuse`] if there is one already: which of the two a function would
/// use must not depend on the order of start-up.
pub fn install(engine: Engine) -> Result<(), Error> {
    INSTALLED.set(engine).map_err(|_| {
        Error::misuse_at_start("an engine is installed already; this one was not installed: install one, once, at start-up")
    })
}

/// Opens the store of a URL and builds an engine on it, with the builder's
/// defaults and the namespace `default`: without a secret, and so the store
/// never takes one later.
///
/// Schemes: `sqlite://PATH` (feature `sqlite`), `postgres://…` or
/// `postgresql://…` (feature `postgres`), `mysql://…` or `mariadb://…` (feature
/// `mysql`), `redis://…` or `redis-cluster://HOST:PORT,…` (feature `redis`); a
/// file and the schema are created if needed.
///
/// # Cancel safety
/// Dropping the future leaves at most an empty schema behind.
///
/// # Errors
/// If the scheme is not known, or as [`EngineBuilder::build`].
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let url = format!("sqlite://{}", folder.path().join("shop.db").display());
/// let engine = idem::connect(&url).await?;
/// # drop(engine); Ok(()) }
/// ```
pub async fn connect(url: &str) -> Result<Engine, Error> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" => {
            let store = crate::store::SqliteStore::connect(url).await?;
            Engine::builder(store).build().await
        }
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            let store = crate::store::PostgresStore::connect(url).await?;
            store.migrate().await?;
            Engine::builder(store).build().await
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            let store = crate::store::MySqlStore::connect(url).await?;
            store.migrate().await?;
            Engine::builder(store).build().await
        }
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis-cluster" | "rediss-cluster" => {
            let store = crate::store::RedisStore::connect(url).await?;
            Engine::builder(store).build().await
        }
        #[cfg(not(feature = "redis"))]
        "redis" | "rediss" | "redis-cluster" | "rediss-cluster" => Err(Error::misuse_at_start(
            "`redis:` and `redis-cluster:` need the feature `redis` of idem-runtime",
        )),
        #[cfg(not(feature = "mysql"))]
        "mysql" | "mariadb" => Err(Error::misuse_at_start(
            "`mysql:` needs the feature `mysql` of idem-runtime",
        )),
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => Err(Error::misuse_at_start(
            "`postgres:` needs the feature `postgres` of idem-runtime",
        )),
        #[cfg(not(feature = "sqlite"))]
        "sqlite" => Err(Error::misuse_at_start(
            "`sqlite:` needs the feature `sqlite` of idem-runtime",
        )),
        _ => Err(Error::misuse_at_start(
            "the store's URL has a scheme that is not known: write `sqlite://PATH`, `postgres://…`, `mysql://…`, `redis://…` or `redis-cluster://…`",
        )),
    }
}
