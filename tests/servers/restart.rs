//! A server is killed with SIGKILL and started again, three times, under load:
//! no key runs twice, and when it is back everything answers, in the same
//! process.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use idem::{Engine, Error, OnInProgress};

use crate::place::{Server, prefix, until};
use crate::private::Private;

const KEYS: usize = 200;
const TTL: Duration = Duration::from_secs(3_600);
/// Callers of each engine.
const CALLERS: usize = 16;

/// What the bodies did and the callers saw, by key.
struct Ledger {
    runs: Vec<AtomicUsize>,
    answers: Vec<AtomicUsize>,
    /// Whose completion was not confirmed at once.
    unrecorded: Vec<AtomicBool>,
    next: AtomicUsize,
    stopped: AtomicBool,
}

impl Ledger {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            runs: (0..KEYS).map(|_| AtomicUsize::new(0)).collect(),
            answers: (0..KEYS).map(|_| AtomicUsize::new(0)).collect(),
            unrecorded: (0..KEYS).map(|_| AtomicBool::new(false)).collect(),
            next: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        })
    }

    fn has_run(&self) -> usize {
        let runs = self.runs.iter().map(|runs| runs.load(Ordering::SeqCst));
        runs.filter(|runs| *runs > 0).count()
    }
}

async fn engine(server: Server, url: &str, prefix: &str) -> Engine {
    let builder = server.open(url, prefix, 8).await;
    builder
        .store_timeout(Duration::from_secs(1))
        .reserve_timeout(Duration::from_secs(1))
        .lease(Duration::from_secs(10))
        .build()
        .await
        .unwrap()
}

/// Makes one call, and checks what it says.
async fn call(engine: &Engine, ledger: &Arc<Ledger>, key: usize) -> Result<usize, Error> {
    let body = {
        let ledger = Arc::clone(ledger);
        async move {
            let before = ledger.runs[key].fetch_add(1, Ordering::SeqCst);
            assert_eq!(before, 0, "a second run of {key}");
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(key * 7)
        }
    };
    let call = engine.call("restart", &key, TTL);
    let call = call.on_in_progress(OnInProgress::Wait(Duration::from_millis(500)));
    let (answer, outcome) = call.run_detailed(body).await;
    match &answer {
        Ok(answer) => {
            assert_eq!(*answer, key * 7, "the answer of another key");
            ledger.answers[key].fetch_add(1, Ordering::SeqCst);
            if !outcome.recorded {
                ledger.unrecorded[key].store(true, Ordering::SeqCst);
            }
        }
        Err(Error::Store(_) | Error::InProgress { .. } | Error::UnknownOutcome { .. }) => {}
        Err(other) => panic!("{key}: {other:?}"),
    }
    answer
}

async fn survives(server: Server) {
    // What was acknowledged must be there after the kill.
    let settings: &[&str] = match server {
        Server::Postgres => &[],
        Server::MariaDb | Server::MySql => &["innodb-flush-log-at-trx-commit=1"],
        Server::Redis => &["appendonly=yes", "appendfsync=always"],
    };
    let mut private = Private::start(server, settings).await;
    let (url, prefix) = (private.url(), prefix());
    let engines = [
        engine(server, &url, &prefix).await,
        engine(server, &url, &prefix).await,
    ];
    let ledger = Ledger::new();
    let mut callers = tokio::task::JoinSet::new();
    for engine in engines.iter().cycle().take(2 * CALLERS) {
        let (engine, ledger) = (engine.clone(), Arc::clone(&ledger));
        callers.spawn(async move {
            // All callers go through the keys, eight calls of each key a round.
            while !ledger.stopped.load(Ordering::SeqCst) {
                let key = ledger.next.fetch_add(1, Ordering::SeqCst) / 8 % KEYS;
                call(&engine, &ledger, key).await.ok();
            }
        });
    }
    for run in [20, 80, 140] {
        until(|| ledger.has_run() >= run).await;
        private.kill();
        private.restart().await;
    }
    until(|| ledger.has_run() == KEYS).await;
    ledger.stopped.store(true, Ordering::SeqCst);
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    // What could not be recorded meanwhile is recorded now.
    for engine in &engines {
        until(|| engine.stats() == idem::Stats::default()).await;
    }
    let mut unknown = HashSet::new();
    for key in 0..KEYS {
        for engine in &engines {
            match call(engine, &ledger, key).await {
                Ok(_) => {}
                Err(Error::UnknownOutcome { .. }) => drop(unknown.insert(key)),
                Err(other) => panic!("{key} does not answer: {other:?}"),
            }
        }
        assert_eq!(ledger.runs[key].load(Ordering::SeqCst), 1, "{key}");
    }
    for key in unknown {
        let unrecorded = ledger.unrecorded[key].load(Ordering::SeqCst);
        assert!(unrecorded, "{key} was recorded, and is unknown");
    }
    let new = engines[0].call("restart.new", &1, TTL);
    assert_eq!(new.run(async { Ok::<_, Error>(1) }).await, Ok(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_killed_three_times_and_no_key_runs_twice() {
    survives(Server::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_is_killed_three_times_and_no_key_runs_twice() {
    survives(Server::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_statements_of_mysql_it_is_killed_three_times_and_no_key_runs_twice() {
    survives(Server::MySql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_killed_three_times_and_no_key_runs_twice() {
    survives(Server::Redis).await;
}
