//! Other attributes beside this one, above and below it.

use std::sync::{LazyLock, OnceLock};

use idem::store::MemoryStore;
use idem::{Engine, Error, idempotent};

use crate::{Runs, once};

#[tracing::instrument(skip_all, fields(id))]
#[idempotent(key = id, ttl = "1h")]
async fn traced_outside(runs: Runs, id: u32) -> Result<u32, Error> {
    runs.add();
    Ok(id)
}

#[idempotent(key = id, ttl = "1h")]
#[tracing::instrument(skip(runs), ret, err)]
async fn traced_inside(runs: Runs, mut id: u32) -> Result<u32, Error> {
    runs.add();
    id += 1;
    Ok(id)
}

/// Docs, lints and conditions stay on the function.
#[must_use = "it is the answer"]
#[cfg_attr(test, idempotent(key = id, ttl = "1h"))]
#[inline]
async fn conditional(runs: Runs, id: u32) -> Result<u32, Error> {
    #![allow(clippy::let_and_return, reason = "an inner attribute")]
    runs.add();
    let answer = id;
    Ok(answer)
}

/// Pastes a function a second time, as checking attributes do.
macro_rules! checked {
    ($($function:tt)*) => {
        $($function)*

        const _: () = {
            #[allow(dead_code, reason = "only compiled")]
            $($function)*
        };
    };
}

checked! {
    #[idempotent(key = id, ttl = "1h", name = "pasted")]
    async fn pasted(runs: Runs, id: u32) -> Result<u32, Error> {
        runs.add();
        Ok(id)
    }
}

#[tokio::test]
async fn spans_above_and_below() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || traced_outside(runs.clone(), 1)).await, 1);
    assert_eq!(once(&runs, || traced_inside(runs.clone(), 1)).await, 2);
}

#[tokio::test]
async fn conditions_and_inner_attributes() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || conditional(runs.clone(), 1)).await, 1);
}

#[tokio::test]
async fn a_function_that_is_pasted_twice() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || pasted(runs.clone(), 1)).await, 1);
}

/// An engine for functions that cannot be called under one.
fn shared() -> Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let build = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let engine = runtime.block_on(Engine::builder(MemoryStore::new()).build());
        drop(std::thread::spawn(move || {
            runtime.block_on(std::future::pending::<()>());
        }));
        engine.unwrap()
    };
    let on_a_thread = || std::thread::spawn(build).join().unwrap();
    ENGINE.get_or_init(on_a_thread).clone()
}

static RUNS: LazyLock<Runs> = LazyLock::new(Runs::default);

fn today() -> &'static str {
    "2026-11-30"
}

/// A test may be annotated itself; the attribute of the runtime comes below.
#[idempotent(key = today(), ttl = "1h", engine = shared())]
#[tokio::test]
async fn a_test_that_is_annotated() -> Result<(), Error> {
    RUNS.add();
    assert_eq!(RUNS.count(), 1);
    Ok(())
}
