//! The operations, one for each promise of the guarantee table.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use idem::{Engine, Error, Outcome, Recovered, idempotent, observe};
use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::journal::{self, Effect, Journal, now_us};

/// How long answers of the operation `expire` are kept.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// Every operation, by its name in the store.
pub(crate) const OPERATIONS: &[&str] = &["refuse", "abandon", "expire", "rerun", "recover"];

/// One call: its key, its payload, and what its body shall do.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) folder: Arc<PathBuf>,
    pub(crate) journal: Journal,
    pub(crate) key: u64,
    pub(crate) payload: u64,
    pub(crate) dice: u64,
    /// When this call's probe began; zero for none.
    probed_us: Arc<AtomicU64>,
}

/// A refusal that a body made: recorded, and replayed as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refusal {
    Declined(String),
    Engine(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

pub(crate) type Answer = Result<String, Refusal>;

impl Order {
    pub(crate) fn new(
        folder: Arc<PathBuf>,
        journal: Journal,
        key: u64,
        payload: u64,
        dice: u64,
    ) -> Self {
        Self {
            folder,
            journal,
            key,
            payload,
            dice,
            probed_us: Arc::default(),
        }
    }

    /// What every body does: wait, have its effect, wait, end somehow.
    async fn body(self, operation: &str) -> Answer {
        let polled_us = now_us();
        let mut dice = Dice::new(self.dice);
        let context = idem::context()?;
        tokio::time::sleep(dice.millis(0, 30)).await;
        let pid = std::process::id();
        let value = format!("{}-{pid}-{}-{:x}", self.key, context.attempt(), dice.roll());
        let fate = dice.below(40);
        let probed_us = self.probed_us.load(Ordering::SeqCst);
        self.journal.effect(&Effect {
            operation: operation.to_owned(),
            key: self.key,
            payload: self.payload,
            fence: context.fence(),
            began_us: if probed_us > 0 { probed_us } else { polled_us },
            at_us: now_us(),
            downstream: context.downstream_key("effect"),
            pid,
            panics: fate == 0,
            value: value.clone(),
        });
        match fate {
            0 => panic!("a body that panics"),
            // Longer than its lease.
            1 => tokio::time::sleep(Duration::from_millis(900)).await,
            // Blocks its thread.
            2 => std::thread::sleep(dice.millis(50, 700)),
            3..8 => return Err(Refusal::Declined(value)),
            _ => tokio::time::sleep(dice.millis(0, 30)).await,
        }
        Ok(value)
    }

    /// Asks the journal whether the effect happened.
    fn look(&self) -> Result<Recovered<String>, Refusal> {
        self.probed_us.store(now_us(), Ordering::SeqCst);
        let found = journal::find(&self.folder, "recover", self.key);
        Ok(found.map_or(Recovered::NotDone, |effect| Recovered::Done(effect.value)))
    }
}

#[idempotent(name = "refuse", key = order.key, payload = order.payload, ttl = "1h", engine = engine, on_in_progress = wait("3s"))]
async fn refuse(engine: Engine, order: Order) -> Answer {
    order.body("refuse").await
}

#[idempotent(name = "abandon", key = order.key, payload = order.payload, ttl = forever, engine = engine, on_in_progress = wait("3s"), on_cancel = abandon)]
async fn abandon(engine: Engine, order: Order) -> Answer {
    order.body("abandon").await
}

#[idempotent(name = "expire", key = order.key, payload = order.payload, ttl = SHORT, engine = engine, on_in_progress = wait("3s"))]
async fn expire(engine: Engine, order: Order) -> Answer {
    order.body("expire").await
}

#[idempotent(name = "rerun", key = order.key, payload = order.payload, ttl = "1h", engine = engine, on_in_progress = wait("3s"), on_unknown = rerun)]
async fn rerun(engine: Engine, order: Order) -> Answer {
    order.body("rerun").await
}

#[idempotent(name = "recover", key = order.key, payload = order.payload, ttl = "1h", engine = engine, on_in_progress = wait("3s"), on_unknown = recover(async { order.look() }))]
async fn recover(engine: Engine, order: Order) -> Answer {
    order.body("recover").await
}

/// Calls an operation.
pub(crate) async fn call(
    operation: &'static str,
    engine: Engine,
    order: Order,
) -> (Answer, Option<Outcome>) {
    match operation {
        "refuse" => observe(refuse(engine, order)).await,
        "abandon" => observe(abandon(engine, order)).await,
        "expire" => observe(expire(engine, order)).await,
        "rerun" => observe(rerun(engine, order)).await,
        "recover" => observe(recover(engine, order)).await,
        other => panic!("there is no operation {other}"),
    }
}
