//! Random calls get the same replies from a server as from memory.

use std::sync::Arc;

use idem::store::mysql::Dialect;
use idem::store::{MemoryStore, Store};
use idem::testing::ManualClock;
use idem::testing::conformance::Harness;

use crate::script::{agree, runtime};
use crate::{mysql, postgres, redis};

/// Fewer than of embedded stores: each call is a trip.
const CASES: u32 = 25;

async fn open(harness: impl Harness, clock: &ManualClock) -> Arc<dyn Store> {
    harness.open("agreement", clock.clone()).await.unwrap()
}

fn replies_as_memory_does(servers: impl AsyncFnOnce(&ManualClock) -> Vec<Arc<dyn Store>>) {
    let runtime = runtime();
    let clock = ManualClock::new();
    let mut stores: Vec<Arc<dyn Store>> = vec![Arc::new(MemoryStore::with_clock(clock.clone()))];
    stores.extend(runtime.block_on(servers(&clock)));
    agree(&runtime, &stores, &clock, CASES);
}

#[test]
fn postgres_replies_as_memory_does() {
    replies_as_memory_does(async |clock| vec![open(postgres::harness().await, clock).await]);
}

#[test]
fn mariadb_replies_as_memory_does() {
    replies_as_memory_does(async |clock| {
        vec![
            open(mysql::harness(Dialect::MariaDb).await, clock).await,
            open(mysql::harness(Dialect::MySql).await, clock).await,
        ]
    });
}

#[test]
fn redis_replies_as_memory_does() {
    replies_as_memory_does(async |clock| {
        let mut stores = Vec::new();
        for url in redis::both() {
            stores.push(open(redis::harness(url), clock).await);
        }
        stores
    });
}
