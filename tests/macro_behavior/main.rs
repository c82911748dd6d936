//! Proves that annotated functions behave like the functions they were: every
//! shape runs once and replays, with the attributes, names and lints of its
//! surroundings.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod attributes;
mod captures;
mod evaluation;
mod futures;
mod generics;
mod handlers;
mod hygiene;
mod jobs;
mod lints;
mod macros;
mod parameters;
mod receivers;
mod shapes;
mod traits;
mod versions;

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use idem::Engine;
use idem::store::MemoryStore;

/// Counts runs of a body.
#[derive(Debug, Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// What happened, in order.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

async fn engine() -> Engine {
    Engine::builder(MemoryStore::new()).build().await.unwrap()
}

/// Calls twice under an engine of its own: expects one run and one answer.
async fn once<T, E, F>(runs: &Runs, call: impl Fn() -> F) -> T
where
    T: PartialEq + Debug,
    E: Debug,
    F: Future<Output = Result<T, E>>,
{
    let engine = engine().await;
    let before = runs.count();
    let first = engine.scope(call()).await.unwrap();
    let again = engine.scope(call()).await.unwrap();
    assert_eq!(first, again, "the second caller got another answer");
    assert_eq!(runs.count() - before, 1, "the body did not run once");
    first
}
