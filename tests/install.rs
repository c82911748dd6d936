//! Proves how a process gets its default engine. Alone in its binary: there is
//! one default a process, and it stays.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use idem::store::MemoryStore;
use idem::{Engine, Error, idempotent, install};

#[idempotent(name = "install.echo", key = order, ttl = "1h")]
async fn echo(order: u32) -> Result<u32, Error> {
    Ok(order)
}

#[tokio::test]
async fn an_engine_is_installed_once_and_found_by_every_call_that_has_no_other() {
    assert_eq!(echo(1).await, Err(Error::NoEngine));
    let build = || Engine::builder(MemoryStore::new()).build();
    let (first, second) = (build().await.unwrap(), build().await.unwrap());

    install(first.clone()).unwrap();
    assert!(matches!(install(second.clone()), Err(Error::Misuse { .. })));

    assert_eq!(echo(1).await, Ok(1));
    assert_eq!(tokio::spawn(echo(1)).await.unwrap(), Ok(1));
    // The task's own engine comes first: another store, so a first call there.
    let (answer, outcome) = idem::observe(second.scope(echo(1))).await;
    assert_eq!(answer, Ok(1));
    assert_eq!(outcome.unwrap().how, idem::How::Executed);
}
