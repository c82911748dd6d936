//! What a call in flight and a call that waits hold in memory.
//!
//! **Shows** the bytes of 10,000 calls of as many keys whose bodies have begun, on the store in
//! memory, whose own records are measured apart; and of 10,000 calls that wait for one attempt.
//! A task that only waits is measured too, since every caller is in one.
//!
//! **Run** it:
//!
//! ```text
//! cargo bench --manifest-path benches/Cargo.toml --bench memory
//! ```
//!
//! Bytes are those that the allocator was asked for and not given back, counted by `stats_alloc`:
//! exact, the same at each run, and without what the pages of a process hold beside. What the
//! allocator itself adds to each piece, about 8 to 16 bytes, is not in them.

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use harness::figures::number;
use harness::keys::text;
use harness::{BoxError, Options, on_two_threads};
use idem::identity::Identity;
use idem::record::Claim;
use idem::store::{MemoryStore, Reserve, Store as _, Takeover};
use idem::{Engine, Error};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CALLS: usize = 10_000;
const TTL: Duration = Duration::from_secs(3_600);

fn main() -> Result<(), BoxError> {
    let options = Options::of_command_line()?;
    on_two_threads(measure(options))
}

async fn measure(options: Options) -> Result<(), BoxError> {
    // What tasks and maps grow by is then not that of the first of their kind.
    waiting(100).await?;
    in_flight(100).await?;

    let task = tasks(CALLS).await?;
    let record = records(CALLS).await?;
    let key = in_flight(CALLS).await?;
    let waiter = waiting(CALLS).await?;
    println!("{CALLS} at once, bytes of each, of its task and all that belongs to it");
    let say = |what: &str, bytes: f64| {
        println!("  {what:<48} {:>8}", number(bytes));
        options.note(&json!({ "bench": "memory", "what": what, "bytes": bytes }))
    };
    say("a task that waits, without a call", task)?;
    say("the record in the memory store", record)?;
    say("a key in flight, all in all", key)?;
    say(
        "a key in flight, without task and record",
        key - task - record,
    )?;
    say("a waiter, all in all", waiter)?;
    say("a waiter, without its task", waiter - task)?;
    Ok(())
}

fn held() -> f64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as f64 - stats.bytes_deallocated as f64
}

/// Waits until it is so.
async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // What has just begun may still allocate.
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn tasks(count: usize) -> Result<f64, BoxError> {
    let gate = Arc::new(Semaphore::new(0));
    let mut tasks = JoinSet::new();
    let before = held();
    for _ in 0..count {
        let gate = Arc::clone(&gate);
        tasks.spawn(async move { gate.acquire().await.map(drop) });
    }
    until(|| true).await;
    let bytes = held() - before;
    gate.close();
    while let Some(ended) = tasks.join_next().await {
        ended?.err();
    }
    Ok(bytes / count as f64)
}

async fn records(count: usize) -> Result<f64, BoxError> {
    let store = MemoryStore::new();
    let identity = Identity::new(None, "bench");
    let before = held();
    for n in 0..count {
        let key = serde_json::to_vec(&text(1, u64::try_from(n)?))?;
        let id = identity.record_id("bench.charge", None, &key);
        let request = Reserve {
            id,
            operation: "bench.charge".to_owned(),
            label: None,
            scope: None,
            fingerprint: identity.fingerprint(&id, &[]),
            elements: Vec::new(),
            claim: Claim::from_bytes(u128::try_from(n)?.to_be_bytes()),
            lease_us: 30_000_000,
            grace_us: 5_000_000,
            takeover: Takeover::Refuse,
            max_takeovers: 5,
            version: None,
        };
        store.reserve(&request).await?;
    }
    Ok((held() - before) / count as f64)
}

/// Calls of different keys, held open by their bodies.
async fn in_flight(count: usize) -> Result<f64, BoxError> {
    let engine = Engine::builder(MemoryStore::new()).build().await?;
    let gate = Arc::new(Semaphore::new(0));
    let mut calls = JoinSet::new();
    let before = held();
    for n in 0..count {
        let (engine, gate) = (engine.clone(), Arc::clone(&gate));
        calls.spawn(async move {
            let key = text(1, n as u64);
            let call = engine.call("bench.charge", key.as_str(), TTL);
            call.run(async move {
                gate.acquire().await.ok();
                Ok::<_, Error>(1)
            })
            .await
        });
    }
    until(|| engine.stats().attempts == count).await;
    let bytes = held() - before;
    gate.close();
    while let Some(answer) = calls.join_next().await {
        answer??;
    }
    Ok(bytes / count as f64)
}

/// Calls of one key that wait for its attempt.
async fn waiting(count: usize) -> Result<f64, BoxError> {
    let engine = Engine::builder(MemoryStore::new()).max_waiters(count + 1);
    let engine = engine.build().await?;
    let gate = Arc::new(Semaphore::new(0));
    let mut calls = JoinSet::new();
    let call = |engine: Engine, gate: Arc<Semaphore>| async move {
        let call = engine.call("bench.charge", "o-7", TTL);
        call.run(async move {
            gate.acquire().await.ok();
            Ok::<_, Error>(1)
        })
        .await
    };
    calls.spawn(call(engine.clone(), Arc::clone(&gate)));
    until(|| engine.stats().attempts == 1).await;
    let before = held();
    for _ in 0..count {
        calls.spawn(call(engine.clone(), Arc::clone(&gate)));
    }
    until(|| engine.stats().waiters == count).await;
    let bytes = held() - before;
    gate.close();
    while let Some(answer) = calls.join_next().await {
        answer??;
    }
    Ok(bytes / count as f64)
}
