//! Our side: the engine with its defaults, by a call whose body returns at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use idem::store::Store;
use idem::{Engine, Error};

use crate::keys::{mix, text};
use crate::{BoxError, Side};

/// Finished records that are there before anything is measured, all of which are replayed.
pub const RECORDED: u64 = 10_000;
/// Bytes of the recorded answer as JSON: `{"Ok":"…"}`.
pub const ANSWER: usize = 300;
const TTL: Duration = Duration::from_secs(86_400);
/// The operation of all calls.
pub const OPERATION: &str = "bench.charge";
/// The series of the recorded keys.
pub const OLD: u64 = 1;
const FRESH: u64 = 2;

/// The engine, as a program calls it.
#[derive(Debug, Clone)]
pub struct Ours {
    engine: Engine,
    recorded: u64,
    next: Arc<AtomicU64>,
}

impl Ours {
    /// Builds the engine and records `recorded` answers.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn new(store: impl Store, recorded: u64) -> Result<Self, BoxError> {
        let engine = Engine::builder(store).namespace("bench").build().await?;
        let ours = Self {
            engine,
            recorded,
            next: Arc::default(),
        };
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..64 {
            let ours = ours.clone();
            callers.spawn(async move {
                for n in (caller..ours.recorded).step_by(64) {
                    ours.record(&text(OLD, n)).await?;
                }
                Ok::<_, BoxError>(())
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(ours)
    }

    /// The same, where more answers have been recorded by other means. One of them is replayed.
    ///
    /// # Errors
    /// If it is not there: the body would have run.
    pub async fn with_recorded(mut self, recorded: u64) -> Result<Self, BoxError> {
        self.recorded = recorded;
        let call = self
            .engine
            .call(OPERATION, text(OLD, recorded - 1).as_str(), TTL);
        let answer: String = call.run(async { Ok::<_, Error>(String::new()) }).await?;
        if answer.is_empty() {
            return Err("what was loaded is not replayed".into());
        }
        Ok(self)
    }

    /// Calls a key until its answer is recorded, as clients do: nothing is measured yet, and a disk
    /// that stands still for a while is no reason to end.
    async fn record(&self, key: &str) -> Result<(), BoxError> {
        for _ in 0..10 {
            match self.call(key).await {
                Err(error) if error.downcast_ref().is_some_and(Error::is_retryable) => {}
                done => return done,
            }
        }
        self.call(key).await
    }

    async fn call(&self, key: &str) -> Result<(), BoxError> {
        let answer: String = self
            .engine
            .call(OPERATION, key, TTL)
            .run(async { Ok::<_, Error>("x".repeat(ANSWER - r#"{"Ok":""}"#.len())) })
            .await?;
        if answer.len() == ANSWER - r#"{"Ok":""}"#.len() {
            return Ok(());
        }
        Err("another answer than the recorded one".into())
    }

    /// The engine itself.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}

impl Side for Ours {
    async fn first(&self) -> Result<(), BoxError> {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.call(&text(FRESH, n)).await
    }

    async fn replay(&self) -> Result<(), BoxError> {
        let n = mix(self.next.fetch_add(1, Ordering::Relaxed)) % self.recorded;
        self.call(&text(OLD, n)).await
    }
}
