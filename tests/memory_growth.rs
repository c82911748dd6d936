//! Proves that finished keys leave nothing behind once they are swept: memory
//! after a million of them is that after a hundred thousand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::time::Duration;

use idem::store::MemoryStore;
use idem::testing::ManualClock;
use idem::{Engine, Error, Stats};

const KEYS: u32 = 1_000_000;
const FIRST: u32 = 100_000;
/// Keys between two sweeps.
const ROUND: u32 = 10_000;
const TASKS: u32 = 100;

/// The most memory that this process has had, in bytes: what is resident at one
/// moment depends on when the allocator gave something back
/// (<https://man7.org/linux/man-pages/man5/proc_pid_status.5.html>).
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib * 1_024
}

async fn call(engine: &Engine, key: u32) {
    let call = engine.call("growth.call", &key, Duration::from_secs(1));
    let answer = call.run(async move { Ok::<_, Error>(key) }).await;
    assert_eq!(answer, Ok(key));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_keys_take_no_more_memory_than_a_hundred_thousand() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let engine = Engine::builder(store.clone())
        .grace(Duration::ZERO)
        .build()
        .await
        .unwrap();
    let mut after_first = 0;
    for round in 0..KEYS / ROUND {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS {
            let engine = engine.clone();
            let first = round * ROUND + task * (ROUND / TASKS);
            tasks.spawn(async move {
                for key in first..first + ROUND / TASKS {
                    call(&engine, key).await;
                }
            });
        }
        tasks.join_all().await;
        clock.advance(Duration::from_secs(2));
        assert_eq!(engine.sweep().await, Ok(u64::from(ROUND)));
        if (round + 1) * ROUND == FIRST {
            after_first = most_resident();
        }
    }
    let after_all = most_resident();
    assert_eq!(engine.stats(), Stats::default());
    assert!(store.is_empty());
    let mib = |bytes: u64| bytes / (1024 * 1024);
    println!("{} MiB, then {} MiB", mib(after_first), mib(after_all));
    assert!(
        after_all <= after_first + 10 * 1024 * 1024,
        "{} MiB after {FIRST} keys, {} MiB after {KEYS}",
        mib(after_first),
        mib(after_all)
    );
}
