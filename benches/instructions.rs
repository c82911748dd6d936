//! Instructions of the parts of a call in this process: counts that no neighbour disturbs.
//!
//! **Shows** what valgrind counts for the digest of a key, a fingerprint, a flight of one caller, and
//! a replay on the store in memory.
//!
//! **Run** it, with valgrind and gungraun's runner in the version of `Cargo.lock`:
//!
//! ```text
//! cargo install gungraun-runner --version 0.20.0
//! cargo bench --manifest-path benches/Cargo.toml --bench instructions --features flights
//! ```

use std::hint::black_box;
use std::time::Duration;

use gungraun::{library_benchmark, library_benchmark_group, main};
use harness::keys::text;
use harness::orders::{Basket, Order, basket, order};
use idem::identity::{Fingerprint, Identity};
use idem::store::MemoryStore;
use idem::{Engine, Error, canonical};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;

const TTL: Duration = Duration::from_secs(3_600);

fn identity() -> Identity {
    Identity::new(None, "bench")
}

fn digest<T: Serialize>(identity: &Identity, value: &T) -> Fingerprint {
    let id = identity.record_id("bench.charge", None, br#""o-7""#);
    let json = canonical::to_vec(value).expect("it is a payload");
    identity.fingerprint(&id, &[&json])
}

#[library_benchmark]
#[bench::key(identity())]
fn record_id(identity: Identity) {
    black_box(identity.record_id("bench.charge", None, black_box(br#""o-7""#)));
}

#[library_benchmark]
#[bench::fields(identity(), order())]
fn fingerprint_of_5_fields(identity: Identity, order: Order) {
    black_box(digest(&identity, black_box(&order)));
}

#[library_benchmark]
#[bench::large(identity(), basket())]
fn fingerprint_of_10_kb(identity: Identity, basket: Basket) {
    black_box(digest(&identity, black_box(&basket)));
}

#[library_benchmark]
#[bench::fields(order())]
fn serde_json_and_sha256_of_5_fields(order: Order) {
    let json = serde_json::to_vec(black_box(&order)).expect("it is JSON");
    black_box(Sha256::digest(json));
}

#[library_benchmark]
#[bench::large(basket())]
fn serde_json_and_sha256_of_10_kb(basket: Basket) {
    let json = serde_json::to_vec(black_box(&basket)).expect("it is JSON");
    black_box(Sha256::digest(json));
}

/// A runtime of one thread, so that the count is of one schedule.
fn runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime starts")
}

/// Twice, so that nothing is done for the first time in what is counted.
fn recorded() -> (Runtime, Engine) {
    let runtime = runtime();
    let engine = runtime.block_on(Engine::builder(MemoryStore::new()).build());
    let engine = engine.expect("an engine starts");
    for _ in 0..2 {
        call(&runtime, &engine, 1);
    }
    (runtime, engine)
}

fn call(runtime: &Runtime, engine: &Engine, n: u64) {
    let call = engine.call("bench.charge", text(1, n).as_str(), TTL);
    let answer = runtime.block_on(call.run(async { Ok::<_, Error>(4_200) }));
    black_box(answer.expect("it is recorded"));
}

#[library_benchmark]
#[bench::memory_store(recorded())]
fn replay((runtime, engine): (Runtime, Engine)) -> (Runtime, Engine) {
    call(&runtime, &engine, 1);
    // What ends an engine is not part of a call.
    (runtime, engine)
}

library_benchmark_group!(
    name = benches,
    benchmarks = [
        record_id,
        fingerprint_of_5_fields,
        serde_json_and_sha256_of_5_fields,
        fingerprint_of_10_kb,
        serde_json_and_sha256_of_10_kb,
        replay
    ]
);
main!(library_benchmark_groups = benches);
