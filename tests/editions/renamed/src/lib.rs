//! Proves that the attribute finds a dependency that has another name here.
#![deny(warnings)]
#![cfg(test)]

use my_idem::store::MemoryStore;
use my_idem::{Engine, Error, idempotent};

#[idempotent(key = id, ttl = "1h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[tokio::test]
async fn a_renamed_dependency_is_found() {
    let engine = Engine::builder(MemoryStore::new()).build().await;
    let engine = engine.expect("a memory store needs nothing");
    assert_eq!(engine.scope(charge(1)).await, Ok(1));
}
