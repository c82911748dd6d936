//! One process: callers on one store, until its input ends or it is killed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use idem::{Engine, Error, Outcome};

use crate::dice::Dice;
use crate::journal::{Journal, Told, now_us};
use crate::place;
use crate::within::{self, Database};
use crate::workload::{self, Answer, OPERATIONS, Order, Refusal};

/// A key is called by many for about as long as this, and then no more.
const WINDOW_US: u64 = 3_000_000;
/// Renewals have a third of a lease each, 167 ms.
const STALL_US: u64 = 120_000;
/// A new key of each operation comes this often.
const STEP_US: u64 = 150_000;

#[tokio::main]
pub(crate) async fn run(args: &[String]) {
    let [store, direct, folder, seed, callers] = args else {
        panic!("usage: worker PLACE DIRECT FOLDER SEED CALLERS");
    };
    // Bodies panic on purpose.
    std::panic::set_hook(Box::new(|_| {}));
    let folder = Arc::new(PathBuf::from(folder));
    let engine = place::engine(store).await;
    let database = Database::open(direct).await.map(Arc::new);
    let over = Arc::new(AtomicBool::new(false));
    let mut dice = Dice::new(seed.parse().unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..callers.parse::<usize>().unwrap() {
        let caller = Caller {
            engine: engine.clone(),
            database: database.clone(),
            journal: Journal::open(&folder),
            folder: Arc::clone(&folder),
            dice: Dice::new(dice.roll()),
            over: Arc::clone(&over),
        };
        tasks.spawn(caller.call_on_and_on());
    }
    let journal = Journal::open(&folder);
    let sweeper = tokio::spawn(sweep(engine.clone(), journal.clone(), Arc::clone(&over)));
    std::thread::spawn(move || watch(&journal));
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().lines().count());
    println!("ready");
    ended.await.unwrap();
    over.store(true, Ordering::SeqCst);
    tasks.join_all().await;
    sweeper.await.unwrap();
    engine.shutdown(Duration::from_secs(10)).await.unwrap();
    let left = engine.stats();
    assert_eq!(left, idem::Stats::default(), "something was left behind");
    println!("done");
}

/// Deletes what has expired, against the live traffic.
async fn sweep(engine: Engine, journal: Journal, over: Arc<AtomicBool>) {
    while !over.load(Ordering::SeqCst) {
        let from_us = now_us();
        // A store that cannot be reached is a fault of this soak.
        engine.sweep().await.ok();
        if now_us() - from_us > STALL_US {
            journal.stall(from_us, now_us());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Notes when the machine is too busy to let even an idle thread run in time:
/// so may be the thread that renews leases.
fn watch(journal: &Journal) -> ! {
    let mut last_us = now_us();
    loop {
        std::thread::sleep(Duration::from_millis(20));
        let woken_us = now_us();
        if woken_us - last_us > STALL_US {
            journal.stall(last_us, woken_us);
        }
        last_us = woken_us;
    }
}

struct Caller {
    engine: Engine,
    /// None if the store has no transactions.
    database: Option<Arc<Database>>,
    journal: Journal,
    folder: Arc<PathBuf>,
    dice: Dice,
    over: Arc<AtomicBool>,
}

impl Caller {
    async fn call_on_and_on(mut self) {
        while !self.over.load(Ordering::SeqCst) {
            let within = self.database.is_some() && self.dice.percent(10);
            let operation = match within {
                true => within::OPERATION,
                false => *self.dice.pick(OPERATIONS),
            };
            let newest = now_us() / STEP_US;
            let key = newest - self.dice.below(WINDOW_US / STEP_US);
            // Now and then somebody uses a key for something else.
            let payload = u64::from(self.dice.percent(5));
            self.call(operation, key, payload).await;
            tokio::time::sleep(self.dice.millis(0, 20)).await;
        }
    }

    async fn call(&mut self, operation: &'static str, key: u64, payload: u64) {
        let order = Order::new(
            Arc::clone(&self.folder),
            self.journal.clone(),
            key,
            payload,
            self.dice.roll(),
        );
        let (engine, database) = (self.engine.clone(), self.database.clone());
        let call = async move {
            match database {
                Some(database) if operation == within::OPERATION => {
                    database.call(&engine, order).await
                }
                _ => workload::call(operation, engine, order).await,
            }
        };
        // In a task, so that a body's panic does not end this caller.
        let mut task = tokio::spawn(call);
        if self.dice.percent(10) {
            // The client goes away: the future is dropped at some poll.
            let patience = self.dice.millis(0, 60);
            if let Ok(ended) = tokio::time::timeout(patience, &mut task).await {
                self.told(operation, key, payload, ended);
            } else {
                task.abort();
            }
            return;
        }
        let ended = task.await;
        self.told(operation, key, payload, ended);
    }

    fn told(
        &self,
        operation: &str,
        key: u64,
        payload: u64,
        ended: Result<(Answer, Option<Outcome>), tokio::task::JoinError>,
    ) {
        let (how, recorded, value) = match ended {
            Ok((answer, outcome)) => describe(answer, outcome.as_ref()),
            Err(_) => ("panicked".to_owned(), false, None),
        };
        self.journal.told(&Told {
            operation: operation.to_owned(),
            key,
            payload,
            at_us: now_us(),
            how,
            recorded,
            value,
        });
    }
}

/// How an answer came about, or the name of the error.
pub(crate) fn describe(
    answer: Answer,
    outcome: Option<&Outcome>,
) -> (String, bool, Option<String>) {
    let how = outcome.map_or("none", |outcome| outcome.how.name());
    let recorded = outcome.is_some_and(|outcome| outcome.recorded);
    match answer {
        Ok(value) | Err(Refusal::Declined(value)) => (how.to_owned(), recorded, Some(value)),
        Err(Refusal::Engine(error)) => (name(&error).to_owned(), recorded, None),
    }
}

fn name(error: &Error) -> &'static str {
    match error {
        Error::InProgress { .. } => "in-progress",
        Error::PayloadMismatch { .. } => "mismatch",
        Error::UnknownOutcome { .. } => "unknown",
        Error::Superseded => "superseded",
        Error::ShuttingDown => "shutting-down",
        Error::Store(_) | Error::NotRecorded(_) => "store-error",
        other => panic!("no caller may see {other:?}"),
    }
}
