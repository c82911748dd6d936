//! Proves that `crate = path` works where the library is no dependency.
#![deny(warnings)]
#![cfg(test)]

use idem_facade::operation;
use idem_facade::prelude::idem::Engine;
use idem_facade::prelude::idem::store::MemoryStore;
use idem_facade::prelude::{Error, idempotent};

#[idempotent(key = id, ttl = "1h", crate = idem_facade::prelude::idem)]
async fn charge(id: u32, mut amount: u32) -> Result<u32, Error> {
    amount += id;
    Ok(amount)
}

operation!(refund(id: u32) -> u32: Ok(id));

#[tokio::test]
async fn the_library_is_found_where_the_path_says() {
    let engine = Engine::builder(MemoryStore::new()).build().await;
    let engine = engine.expect("a memory store needs nothing");
    assert_eq!(engine.scope(charge(1, 2)).await, Ok(3));
    assert_eq!(engine.scope(refund(4)).await, Ok(4));
}
