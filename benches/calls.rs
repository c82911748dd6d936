//! The parts of a call that have nothing beside them, by criterion.
//!
//! **Shows** the digest of a key, the fingerprint of a small argument, and a whole first call and a
//! whole replay on the store in memory.
//!
//! **Run** it:
//!
//! ```text
//! cargo bench --manifest-path benches/Cargo.toml --bench calls
//! ```
//!
//! Criterion's statistics of one function over time are good for comparing two versions of us
//! (`-- --save-baseline before`, then `-- --baseline before`). What is compared with somebody else is
//! interleaved, in `parts` and `stores`.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use harness::keys::text;
use harness::orders::order;
use idem::identity::Identity;
use idem::store::MemoryStore;
use idem::{Engine, Error, canonical};

const TTL: Duration = Duration::from_secs(3_600);

fn digests(criterion: &mut Criterion) {
    let identity = Identity::new(None, "bench");
    let key = canonical::to_vec(&text(1, 1)).expect("a text is a key");
    criterion.bench_function("record id", |bencher| {
        bencher.iter(|| identity.record_id("bench.charge", None, black_box(&key)));
    });
    let id = identity.record_id("bench.charge", None, &key);
    let order = order();
    criterion.bench_function("fingerprint, 5 fields", |bencher| {
        bencher.iter(|| {
            let json = canonical::to_vec(black_box(&order)).expect("an order is a payload");
            identity.fingerprint(&id, &[&json])
        });
    });
}

fn calls(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime starts");
    let engine = Engine::builder(MemoryStore::new()).build();
    let engine = runtime.block_on(engine).expect("an engine starts");
    let call = |n: u64| {
        let call = engine.call("bench.charge", text(1, n).as_str(), TTL);
        call.payload(&order()).run(async { Ok::<_, Error>(4_200) })
    };
    let fresh = AtomicU64::new(1);
    criterion.bench_function("first call, memory store", |bencher| {
        bencher
            .to_async(&runtime)
            .iter(|| call(fresh.fetch_add(1, Ordering::Relaxed)));
    });
    runtime.block_on(call(0)).expect("the first call runs");
    criterion.bench_function("replay, memory store", |bencher| {
        bencher.to_async(&runtime).iter(|| call(0));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = digests, calls
}
criterion_main!(benches);
