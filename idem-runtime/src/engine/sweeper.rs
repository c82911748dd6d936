//! Sweeping again and again, in the background.

use std::time::{Duration, SystemTime};

use tokio::task::JoinHandle;
use tracing::instrument::WithSubscriber as _;

use super::{Engine, Inner, Spawned};
use crate::backoff;
use crate::clock::from_micros;
use crate::sync::{Arc, Mutex, lock, sleep};
use crate::telemetry;

const SHORTEST: Duration = Duration::from_secs(1);
/// A process may not live for as long as the time between two passes.
const FIRST: Duration = Duration::from_secs(60);

/// A background task that sweeps, from [`Engine::sweeper`]. It stops when this is
/// dropped.
#[derive(Debug)]
#[must_use = "it stops when dropped"]
pub struct Sweeper {
    task: Option<JoinHandle<()>>,
    swept: Arc<Mutex<Swept>>,
}

/// What a [`Sweeper`] has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Swept {
    /// Rows that it deleted.
    pub rows: u64,
    /// Passes that came to their end.
    pub passes: u64,
    /// Passes that the store ended with an error.
    pub failures: u64,
    /// When the last pass came to its end, by this process's clock.
    pub last: Option<SystemTime>,
}

impl Engine {
    /// Sweeps in the background: [`sweep`](Self::sweep) about every `every`, which
    /// is at least a second.
    ///
    /// The first pass comes within a minute, the others after a half to all of
    /// `every`, at random, so that processes that were started together spread
    /// out. A pass deletes in batches of 1,000 rows and leaves the store alone
    /// between two of them for as long as one took. A pass that fails is logged,
    /// and what it left is for the next one.
    ///
    /// It keeps the engine alive, and stops when the [`Sweeper`] is dropped, when
    /// the engine is [shut down](Self::shutdown), or when its runtime ends: that
    /// of the caller, or else the one in which the engine was built. Without a
    /// runtime it does not begin, and says so in the log.
    ///
    /// # Concurrent calls
    /// Sweepers of several processes, and several of one, are harmless: each row
    /// is deleted once.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
    /// let sweeper = engine.sweeper(Duration::from_secs(600)); // as long as the server runs
    /// // … serve …
    /// engine.shutdown(Duration::from_secs(25)).await?;
    /// println!("{} rows swept", sweeper.swept().rows);
    /// # Ok(()) }
    /// ```
    pub fn sweeper(&self, every: Duration) -> Sweeper {
        let swept = Arc::<Mutex<Swept>>::default();
        let runtime = self.inner.runtime();
        if runtime.is_none() {
            telemetry::no_sweeper();
        }
        let work = run(
            Arc::clone(&self.inner),
            every.max(SHORTEST),
            Arc::clone(&swept),
        );
        // Not among the engine's tasks: those are waited for at shutdown.
        let task = runtime.map(|runtime| runtime.spawn(work.with_current_subscriber()));
        Sweeper { task, swept }
    }
}

impl Sweeper {
    /// Returns what it has done so far.
    #[must_use]
    pub fn swept(&self) -> Swept {
        *lock(&self.swept)
    }

    /// Returns whether there will be further passes.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }
}

impl Swept {
    fn end_pass(&mut self, now_us: i64) {
        self.passes += 1;
        self.last = SystemTime::UNIX_EPOCH.checked_add(from_micros(now_us));
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn run(engine: Arc<Inner>, every: Duration, swept: Arc<Mutex<Swept>>) {
    let mut pause = backoff::spread(every.min(FIRST));
    loop {
        tokio::select! {
            biased;
            () = engine.closed() => return,
            () = sleep(pause) => {}
        }
        pass(&engine, &swept).await;
        pause = backoff::spread(every);
    }
}

async fn pass(engine: &Arc<Inner>, swept: &Mutex<Swept>) {
    while !engine.is_closing() {
        let began = engine.clock.monotonic();
        let batch = match engine.sweep_batch().await {
            Spawned::Done(Ok(batch)) => batch,
            Spawned::Done(Err(error)) => {
                telemetry::sweep_failed(Some(&error));
                lock(swept).failures += 1;
                return;
            }
            Spawned::Panicked(_) => {
                telemetry::sweep_failed(None);
                lock(swept).failures += 1;
                return;
            }
            Spawned::Gone => return,
        };
        lock(swept).rows += batch.rows;
        if batch.is_last {
            lock(swept).end_pass(engine.clock.unix_us());
            return;
        }
        // The calls' turn.
        sleep(engine.clock.monotonic().saturating_sub(began)).await;
    }
}
