//! Callers on keys whose answers expire at once, while a sweep goes on without
//! a pause: what runs or is unknown is never deleted, and what is recorded not
//! before its time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem::{Clock as _, Engine, Error, OnInProgress, Stats, SystemClock};
use tokio::sync::oneshot;

const TTL: Duration = Duration::from_millis(30);
const KEYS: usize = 20;
const CALLERS: usize = 8;
/// Runs of bodies in all, each key many times.
const RUNS: usize = 400;
/// Sweeps at least, meanwhile.
const SWEEPS: usize = 20;
/// Two clocks, the store's and this process's, go at nearly the same speed.
const DRIFT: Duration = Duration::from_millis(2);

/// When bodies of each key began and ended.
#[derive(Debug, Default)]
struct Ledger {
    runs: Mutex<HashMap<usize, Vec<(Duration, Duration)>>>,
    count: AtomicUsize,
    over: AtomicBool,
    /// Sweeps that ended.
    rounds: AtomicUsize,
}

async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Runs it on two engines of one place, as two processes would, and returns how
/// many rows were deleted.
pub(crate) async fn is_swept_as_it_runs(engines: [Engine; 2]) -> u64 {
    let ledger = Arc::new(Ledger::default());
    let swept = Arc::new(AtomicU64::new(0));

    // Unknown for good, and running for longer than many TTLs and sweeps.
    let call = engines[0].call("sweep.unknown", &1, TTL);
    let panics = call.run(async { panic!("on purpose") as Result<(), Error> });
    assert!(tokio::spawn(panics).await.is_err());
    let (open, gate) = oneshot::channel::<()>();
    let (start, started) = oneshot::channel();
    let call = engines[0].call("sweep.runs", &1, Duration::from_secs(3_600));
    let runs = tokio::spawn(call.run(async move {
        start.send(()).ok();
        gate.await.ok();
        Ok::<_, Error>(1)
    }));
    started.await.unwrap();

    let sweeper = tokio::spawn({
        let (engine, ledger) = (engines[1].clone(), Arc::clone(&ledger));
        let swept = Arc::clone(&swept);
        async move {
            while !ledger.over.load(Ordering::SeqCst) {
                let rows = engine.sweep().await.unwrap();
                swept.fetch_add(rows, Ordering::SeqCst);
                ledger.rounds.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (engine, ledger) = (engines[caller % 2].clone(), Arc::clone(&ledger));
        callers.spawn(async move {
            let below = |count: &AtomicUsize, least| count.load(Ordering::SeqCst) < least;
            while below(&ledger.count, RUNS) || below(&ledger.rounds, SWEEPS) {
                for key in 0..KEYS {
                    charge(&engine, &ledger, key).await;
                }
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    for engine in &engines {
        let again = engine.call("sweep.unknown", &1, TTL);
        let told = again.run(async { Ok::<_, Error>(()) }).await;
        assert!(told.unwrap_err().is_unknown_outcome(), "it was deleted");
        let again = engine.call("sweep.runs", &1, TTL);
        let again = again.on_in_progress(OnInProgress::Reject);
        let told = again.run(async { Ok::<_, Error>(2) }).await;
        assert!(told.unwrap_err().is_in_progress(), "it was deleted");
    }
    open.send(()).unwrap();
    assert_eq!(runs.await.unwrap(), Ok(1));
    ledger.over.store(true, Ordering::SeqCst);
    sweeper.await.unwrap();
    for engine in &engines {
        until(|| engine.stats() == Stats::default()).await;
    }
    check(&ledger);
    swept.load(Ordering::SeqCst)
}

async fn charge(engine: &Engine, ledger: &Arc<Ledger>, key: usize) {
    let body = {
        let ledger = Arc::clone(ledger);
        async move {
            let from = SystemClock.monotonic();
            tokio::task::yield_now().await;
            ledger.count.fetch_add(1, Ordering::SeqCst);
            let mut runs = ledger.runs.lock().unwrap();
            let to = SystemClock.monotonic();
            runs.entry(key).or_default().push((from, to));
            Ok::<_, Error>(key * 7)
        }
    };
    let answer = engine.call("sweep.live", &key, TTL).run(body).await;
    assert_eq!(answer, Ok(key * 7));
}

/// Between two runs of a key is one TTL at least.
fn check(ledger: &Ledger) {
    let runs = ledger.runs.lock().unwrap();
    let mut pairs = 0;
    for (key, runs) in runs.iter() {
        for pair in runs.windows(2) {
            let (end, next) = (pair[0].1, pair[1].0);
            pairs += 1;
            assert!(
                next + DRIFT >= end + TTL,
                "{key} ran again after {:?}",
                next.saturating_sub(end)
            );
        }
    }
    assert!(pairs > KEYS, "keys were not used again");
}
