//! An engine for one test.

#![expect(clippy::panic, reason = "a test fails by panicking")]

mod assert;
mod clock;

use std::time::Duration;

pub use self::assert::expect_how;
pub use self::clock::TestClock;
use super::ManualClock;
use crate::engine::rehearsal::{self, CrashPoint};
use crate::engine::{Engine, EngineBuilder};
use crate::store::{Finding, MemoryStore};
use crate::sync::Arc;

/// An engine for one test, with a store and a clock of its own.
///
/// Testbeds share nothing, so tests that use one each run side by side. Its
/// settings are the engine's defaults, except that no `max_run` ends the
/// renewals, so that a body that runs lives, however far the clock is moved; a
/// function's own `max_run` counts, and so does one that is set in
/// [`with`](Self::with).
///
/// What it does not do: real time goes on. The wait of `on_in_progress` and
/// the timeouts of the test's own are those of tokio; `start_paused = true` in
/// `#[tokio::test]` moves those.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use idem::testing::{CrashPoint, Testbed, assert_executed, assert_how, assert_replayed};
/// use idem::{Error, Recovered, idempotent};
///
/// #[idempotent(
///     name = "payments.charge", key = order, payload = amount, ttl = "24h",
///     on_unknown = recover(async { Ok(Recovered::Done(4_200)) })
/// )]
/// async fn charge(order: u32, amount: u64) -> Result<u64, Error> {
///     let _ = order;
///     Ok(amount)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let t = Testbed::new().await;
/// assert_eq!(assert_executed!(t.scope(charge(7, 4_200))), Ok(4_200));
/// assert_eq!(assert_replayed!(t.scope(charge(7, 4_200))), Ok(4_200));
/// assert!(t.scope(charge(7, 1)).await.is_err_and(|error| error.is_mismatch()));
///
/// t.clock().advance(Duration::from_secs(25 * 60 * 60));
/// assert_executed!(t.scope(charge(7, 4_200)))?;
///
/// t.crash_at("payments.charge", CrashPoint::InBody);
/// assert_eq!(t.scope(charge(8, 4_200)).await, Err(Error::ShuttingDown));
/// t.lapse();
/// assert_how!(Recovered, t.scope(charge(8, 4_200)))?;
/// assert_eq!(t.runs("payments.charge"), 3);
/// # Ok(()) }
/// ```
pub struct Testbed {
    engine: Engine,
    store: MemoryStore,
    clock: TestClock,
    configure: Arc<Configure>,
}

type Configure = dyn Fn(EngineBuilder) -> EngineBuilder + Send + Sync;

impl std::fmt::Debug for Testbed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Testbed")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

impl Testbed {
    /// Creates an engine on an empty store, with a clock that stands still at
    /// 2026-01-01T00:00:00Z.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Panics
    /// If the thread that renews leases cannot start, or outside of a tokio
    /// runtime.
    pub async fn new() -> Self {
        Self::with(|builder| builder).await
    }

    /// As [`new`](Self::new), with settings of the test's own: a lease, a
    /// secret, `strict`. The clock stays the testbed's.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let t = idem::testing::Testbed::with(|builder| builder.namespace("shop").strict()).await;
    /// # drop(t); }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Panics
    /// If a setting is outside of its limits, or as [`new`](Self::new).
    pub async fn with(
        configure: impl Fn(EngineBuilder) -> EngineBuilder + Send + Sync + 'static,
    ) -> Self {
        let manual = ManualClock::new();
        let store = MemoryStore::with_clock(manual.clone());
        Self::start(store, TestClock::new(manual), Arc::new(configure)).await
    }

    /// Creates what another process on the same store is: an engine with the
    /// same settings, that shares records and the clock with this one, and
    /// nothing else. It has crash points and counts of its own.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub async fn another_process(&self) -> Self {
        let configure = Arc::clone(&self.configure);
        Self::start(self.store.clone(), self.clock.clone(), configure).await
    }

    async fn start(store: MemoryStore, clock: TestClock, configure: Arc<Configure>) -> Self {
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
        let builder = configure(Engine::builder(store.clone()).max_run(CENTURY))
            // What a memory store is, and what a strict engine would refuse.
            .accept_loss(Finding::NotShared)
            .accept_loss(Finding::NoSecret)
            .clock(clock.manual().clone());
        match builder.build().await {
            Ok(engine) => {
                clock.add(&engine);
                Self {
                    engine,
                    store,
                    clock,
                    configure,
                }
            }
            Err(error) => panic!("the testbed's engine does not start: {error}"),
        }
    }

    /// Returns the engine, for a function with `engine = expr`.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the store, to look at a record.
    #[must_use]
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }

    /// Returns the clock of this testbed, of its store, and of its other
    /// processes.
    #[must_use]
    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    /// Makes the testbed's engine that of every annotated call inside `future`,
    /// as [`Engine::scope`]. A task that the test spawns needs a scope of its
    /// own.
    ///
    /// # Cancel safety
    /// As `future`.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.engine.scope(future)
    }

    /// Lets the next attempt of an operation die at a point as if its process
    /// had been killed there.
    ///
    /// Its body is dropped and not polled again, its lease is no longer
    /// renewed, and nothing is told to the store: the record stays in progress
    /// until it lapses. Its caller gets [`Error::ShuttingDown`], which is what a
    /// caller gets whose runtime ended under it. To a killed process nobody
    /// answers; a test cannot wait for that, and a panic would look like a
    /// mistake in the body. Everybody else meets the record as another process
    /// would: they wait for it, and after [`lapse`](Self::lapse) `on_unknown`
    /// decides.
    ///
    /// An attempt is what won the key: calls that are answered without a run
    /// leave the point for a later one. Called twice, it lets the next two
    /// attempts die, in that order. Other than a killed process, the dropped
    /// body runs its destructors, and tasks that it has spawned go on.
    ///
    /// To die at an exact place, let a fake call [`crash_here`].
    ///
    /// [`Error::ShuttingDown`]: crate::Error::ShuttingDown
    pub fn crash_at(&self, operation: impl Into<String>, point: CrashPoint) {
        let rehearsal = &self.engine.inner.rehearsal;
        rehearsal.crash_at(operation.into(), point);
    }

    /// Moves the clock until every attempt that has died in this testbed so
    /// far is lapsed: its lease and the grace are over.
    pub fn lapse(&self) {
        let inner = &self.engine.inner;
        let lease = std::cmp::max(inner.limits.lease, inner.rehearsal.left_behind());
        self.clock
            .advance(lease + inner.limits.grace + Duration::from_micros(1));
    }

    /// Returns how often the body of an operation began in this testbed, not
    /// counting its other processes and calls without a key. A recovery that
    /// finds the answer begins no body.
    #[must_use]
    pub fn runs(&self, operation: &str) -> usize {
        self.engine.inner.rehearsal.runs(operation)
    }
}

impl Drop for Testbed {
    /// # Panics
    /// If an attempt was to die and never came, as with a misspelt operation:
    /// the test has not tested what it says.
    fn drop(&mut self) {
        if let Some(operation) = self.engine.inner.rehearsal.outstanding()
            && !std::thread::panicking()
        {
            panic!(
                "`{operation}` was to crash and has not: no attempt of this name began after `crash_at`"
            );
        }
    }
}

/// Lets the attempt whose body calls this die here, as
/// [`crash_at`](Testbed::crash_at) does: for a fake that answers its first
/// request and dies before the second.
///
/// It unwinds like a panic, without the message of one, so it works in plain
/// and async code; in a task that the body has spawned only that task ends.
///
/// # Examples
/// ```
/// use idem::testing::{Testbed, crash_here};
/// use idem::{Error, idempotent};
///
/// async fn ship() -> Result<(), Error> {
///     crash_here()
/// }
///
/// #[idempotent(name = "order.place", key = order, ttl = "24h")]
/// async fn place(order: u32) -> Result<u32, Error> {
///     ship().await?;
///     Ok(order)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let t = Testbed::new().await;
/// assert_eq!(t.scope(place(7)).await, Err(Error::ShuttingDown));
/// # }
/// ```
///
/// # Panics
/// Outside of the body of a call.
pub fn crash_here() -> ! {
    if let Err(error) = crate::context() {
        panic!("there is no attempt to crash here: {error}");
    }
    std::panic::resume_unwind(rehearsal::crash())
}
