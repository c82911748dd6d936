//! Ten thousand calls that end in every way, and a ledger that bodies and
//! callers keep: every metric is what the ledger says.

use std::sync::Arc;

use idem::store::{MemoryStore, SqliteStore, Store};
use idem::telemetry::names;
use idem::{Engine, OnInProgress, OnUnknown, PlainCall, Secret, context, idempotent, on_error};
use tokio::task::JoinSet;

use crate::documents::is_listed;
use crate::ledger::{Fail, Ledger, Ran};
use crate::recorder::Recorded;
use crate::{DAY, alone};

const CALLS: u32 = 10_000;
const WORKERS: u32 = 48;
/// What is longer cannot be given back.
const LIMIT: usize = 1_024;

/// What a call is of, and how many of a hundred are.
const KINDS: [(Kind, u32); 12] = [
    (Kind::Plain, 30),
    (Kind::Slow, 15),
    (Kind::Reject, 8),
    (Kind::Failed, 6),
    (Kind::Released, 6),
    (Kind::Unknown, 6),
    (Kind::Panics, 4),
    (Kind::Rerun, 8),
    (Kind::Long, 5),
    (Kind::Unprotected, 4),
    (Kind::Keyless, 2),
    (Kind::Versions, 6),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Fresh keys, replays, and other payloads.
    Plain,
    /// Many callers of few keys at once, who wait.
    Slow,
    /// The same, who do not.
    Reject,
    /// Errors that are recorded.
    Failed,
    /// Errors that say that nothing happened.
    Released,
    /// Errors that leave it open.
    Unknown,
    /// Panics.
    Panics,
    /// Such errors, and callers that run again.
    Rerun,
    /// Answers over the limit.
    Long,
    /// No key, where that means to run.
    Unprotected,
    /// No key, where that is a mistake.
    Keyless,
    /// Versions in any order.
    Versions,
}

/// Numbers that are the same in every run, and spread.
#[derive(Debug)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u32::try_from((self.0 >> 33) % u64::from(limit)).unwrap()
    }

    fn kind(&mut self) -> Kind {
        let mut at = self.below(100);
        for (kind, share) in KINDS {
            if at < share {
                return kind;
            }
            at -= share;
        }
        Kind::Plain
    }
}

#[derive(Debug)]
struct World {
    engine: Engine,
    ledger: Ledger,
    /// What the operations of this run begin with.
    name: &'static str,
}

async fn work(turns: u32) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

#[idempotent(key = order, ttl = "1h", name = "totals.unprotected", engine = engine, on_missing_key = run)]
async fn unprotected(engine: Engine, order: Option<u32>, ran: Ran) -> Result<u32, Fail> {
    ran.note();
    work(1).await;
    Ok(0)
}

impl World {
    fn call(&self, operation: &str, key: u32) -> PlainCall {
        self.engine.call(operation.to_owned(), &key, DAY)
    }

    /// A body that notes that it ran, and in which attempt.
    fn body<T: Send + 'static>(
        &self,
        operation: &str,
        ran: &Ran,
        turns: u32,
        end: impl FnOnce(u32) -> Result<T, Fail> + Send + 'static,
    ) -> impl Future<Output = Result<T, Fail>> + Send + 'static {
        let (ledger, operation, ran) = (self.ledger.clone(), operation.to_owned(), ran.clone());
        async move {
            let attempt = context()?.attempt();
            ledger.add(&operation, "ran");
            ran.note();
            work(turns).await;
            end(attempt)
        }
    }

    async fn one(&self, draw: &mut Draw) {
        let kind = draw.kind();
        let operation = match kind {
            // The name of an annotated function is fixed.
            Kind::Unprotected => "totals.unprotected".to_owned(),
            kind => format!("{}.{kind:?}", self.name),
        };
        let (operation, ran) = (operation.as_str(), Ran::default());
        let answer = match kind {
            Kind::Plain => {
                let call = self.call(operation, draw.below(900));
                // One in ten comes with another payload.
                let call = call.payload(&(draw.below(10) / 9));
                call.run(self.completed(operation, &ran, 1)).await
            }
            Kind::Slow => {
                let call = self.call(operation, draw.below(150));
                call.run(self.completed(operation, &ran, 40)).await
            }
            Kind::Reject => {
                let call = self.call(operation, draw.below(60));
                let call = call.on_in_progress(OnInProgress::Reject);
                call.run(self.completed(operation, &ran, 200)).await
            }
            Kind::Unprotected => unprotected(self.engine.clone(), None, ran.clone()).await,
            Kind::Keyless => {
                let call = self.engine.call(operation.to_owned(), "", DAY);
                call.run(self.completed(operation, &ran, 1)).await
            }
            Kind::Versions => {
                let call = self.call(operation, draw.below(40));
                let call = call.version(&u64::from(draw.below(50)));
                call.run(self.completed(operation, &ran, 2)).await
            }
            kind => self.without_answer(kind, operation, draw, &ran).await,
        };
        self.ledger.got(operation, &ran, &answer);
    }

    /// A call whose body may end without an answer to replay.
    async fn without_answer(
        &self,
        kind: Kind,
        operation: &str,
        draw: &mut Draw,
        ran: &Ran,
    ) -> Result<u32, Fail> {
        let (ledger, key) = (&self.ledger, draw.below(150));
        let call = self.call(operation, key);
        match kind {
            Kind::Failed => {
                let end = noted(ledger, operation, "completed", |_| Err(Fail::Own(7)));
                call.run(self.body(operation, ran, 2, end)).await
            }
            Kind::Released => {
                let end = noted(ledger, operation, "released", |_| Err(Fail::Own(7)));
                let call = call.on_error(on_error::Release);
                call.run(self.body(operation, ran, 2, end)).await
            }
            Kind::Unknown => {
                let end = noted(ledger, operation, "unknown_end", |_| Err(Fail::Own(7)));
                let call = call.on_error(on_error::Unknown);
                call.run(self.body(operation, ran, 2, end)).await
            }
            Kind::Panics => {
                let end = noted(ledger, operation, "unknown_end", |_| {
                    // Without the message that a panic prints.
                    std::panic::resume_unwind(Box::new("a body's own"))
                });
                let called = call.run(self.body::<u32>(operation, ran, 2, end));
                let ended = tokio::spawn(called).await;
                ended.unwrap_or_else(|error| {
                    assert!(error.is_panic());
                    Ok(0)
                })
            }
            Kind::Rerun => {
                let (ledger, of) = (ledger.clone(), operation.to_owned());
                let end = move |attempt: u32| {
                    if attempt > 1 {
                        ledger.add(&of, "takeover");
                    }
                    if attempt < 2 + key % 2 {
                        ledger.add(&of, "unknown_end");
                        return Err(Fail::Own(7));
                    }
                    ledger.add(&of, "completed");
                    Ok(0)
                };
                let call = call.on_unknown(OnUnknown::Rerun);
                let call = call.on_error(on_error::Unknown);
                call.run(self.body(operation, ran, 2, end)).await
            }
            Kind::Long => {
                let long = "x".repeat(LIMIT);
                let end = noted(ledger, operation, "tombstone_end", move |_| Ok(long));
                let answer = call.run(self.body(operation, ran, 2, end)).await;
                answer.map(|_: String| 0)
            }
            other => panic!("{other:?} has an answer"),
        }
    }

    fn completed(
        &self,
        operation: &str,
        ran: &Ran,
        turns: u32,
    ) -> impl Future<Output = Result<u32, Fail>> + Send + 'static {
        let end = noted(&self.ledger, operation, "completed", |_| Ok(0));
        self.body(operation, ran, turns, end)
    }

    /// Compares each metric with the ledger.
    fn compare(&self, recorded: &Recorded, before: &Recorded) {
        let count = |name, labels: &[(&str, &str)]| {
            recorded.count(name, labels) - before.count(name, labels)
        };
        let ledger = &self.ledger;
        for operation in ledger.operations() {
            let of = ("operation", operation.as_str());
            let calls = |outcome| count(names::CALLS, &[of, ("outcome", outcome)]);
            let said = |what| ledger.count(&operation, what);
            let executed = if operation == "totals.unprotected" {
                "unprotected"
            } else {
                "executed"
            };
            let mut seen = 0;
            for (outcomes, what) in [
                (&[executed][..], "executed"),
                // From outside they are one.
                (&["replayed", "coalesced"], "given"),
                (&["in_progress"], "in_progress"),
                (&["mismatch"], "mismatch"),
                (&["unknown"], "unknown"),
                (&["stale"], "stale"),
                (&["tombstone"], "tombstone"),
                (&["invalid_key"], "invalid_key"),
            ] {
                let counted: u64 = outcomes.iter().map(|outcome| calls(outcome)).sum();
                assert_eq!(counted, said(what), "{operation}: {outcomes:?}");
                seen += counted;
            }
            assert_eq!(seen, said("calls"), "{operation}");
            assert_eq!(
                count(names::CALLS, &[of]),
                seen,
                "{operation}: no other outcome"
            );

            assert_eq!(
                count(names::RESERVATIONS, &[of]),
                said("ran"),
                "{operation}"
            );
            assert_eq!(
                count(names::TAKEOVERS, &[of]),
                said("takeover"),
                "{operation}"
            );
            let ends = |end| count(names::ATTEMPTS, &[of, ("end", end)]);
            for (end, what) in [
                ("completed", "completed"),
                ("released", "released"),
                ("unknown", "unknown_end"),
                ("tombstone", "tombstone_end"),
            ] {
                assert_eq!(ends(end), said(what), "{operation}: {end}");
            }
            assert_eq!(
                count(names::ATTEMPTS, &[of]),
                said("ran"),
                "{operation}: each ends"
            );
        }
        assert_eq!(ledger.total("calls"), u64::from(CALLS));
    }
}

/// Notes how a body ends.
fn noted<T>(
    ledger: &Ledger,
    operation: &str,
    what: &'static str,
    end: impl FnOnce(u32) -> Result<T, Fail> + Send + 'static,
) -> impl FnOnce(u32) -> Result<T, Fail> + Send + 'static {
    let (ledger, operation) = (ledger.clone(), operation.to_owned());
    move |attempt| {
        ledger.add(&operation, what);
        end(attempt)
    }
}

async fn run(store: impl Store, name: &'static str) {
    let recorded = Recorded::start();
    let before = recorded.frozen();
    let engine = Engine::builder(store)
        .answer_limit(LIMIT)
        .secret(Secret::new(b"sixteen bytes or more".to_vec()).unwrap());
    let world = Arc::new(World {
        engine: engine.build().await.unwrap(),
        ledger: Ledger::default(),
        name,
    });
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let world = Arc::clone(&world);
        workers.spawn(async move {
            let mut draw = Draw(u64::from(worker) + 1);
            for _ in (worker..CALLS).step_by(WORKERS.try_into().unwrap()) {
                world.one(&mut draw).await;
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
    world.compare(recorded, &before);
    recorded.series().iter().for_each(is_listed);
    // The mix had some of each.
    for what in [
        "executed",
        "given",
        "in_progress",
        "mismatch",
        "unknown",
        "stale",
        "tombstone",
        "invalid_key",
        "takeover",
        "released",
    ] {
        assert!(world.ledger.total(what) > 0, "no call was {what}");
    }
    let coalesced = recorded.count(names::CALLS, &[("outcome", "coalesced")]);
    assert!(coalesced > before.count(names::CALLS, &[("outcome", "coalesced")]));
    assert!(!recorded.samples(names::WAIT_SECONDS).is_empty());

    // What is left in the store is what was not taken over.
    let counts = world.engine.observe_store().await.unwrap();
    let left = world.ledger.total("unknown_end") - world.ledger.total("takeover");
    assert_eq!((counts.unknown, counts.in_progress), (left, 0));
    let left = f64::from(u32::try_from(left).unwrap());
    assert!((recorded.gauge(names::UNKNOWN) - left).abs() < 0.5);
    for gauge in [names::IN_PROGRESS, names::LAPSED, names::IN_PROGRESS_AGE] {
        assert!(recorded.gauge(gauge).abs() < f64::EPSILON, "{gauge}");
    }
    let stats = world.engine.stats();
    assert_eq!((stats.attempts, stats.waiters), (0, 0));
    for gauge in [names::HELD, names::WAITING] {
        assert!(recorded.gauge(gauge).abs() < f64::EPSILON, "{gauge}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totals_are_those_of_the_ledger_in_memory() {
    let _turn = alone().await;
    run(MemoryStore::new(), "totals.memory").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totals_are_those_of_the_ledger_on_sqlite() {
    let _turn = alone().await;
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("store.db"))
        .await
        .unwrap();
    run(store, "totals.sqlite").await;
}
