//! A job of apalis that is pushed twice and runs once.
//!
//! **Shows** an annotated job function, [`charge`], and the function around it that apalis calls,
//! [`job`]: `Delivery` decides whether a job is done, tried again or put aside. apalis keeps its
//! own jobs apart by ids that differ on every push, so they are no key; the order is.
//!
//! **Run** it; it needs no services:
//!
//! ```text
//! cargo run --example apalis_job --features brokers
//! ```
//!
//! **Expected output** (exit code 0 only if it is this):
//!
//! ```text
//! o-1: charged 4200
//! o-1: charged 4200
//! o-1: put aside
//! o-2: tried again
//! o-2: charged 1700
//! 3 bodies ran, 2 charges
//! ```

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use apalis::prelude::{
    BoxDynError, Data, MemoryStorage, TaskSink as _, WorkerBuilder, WorkerContext,
};
use idem::store::MemoryStore;
use idem::{Delivery, Engine, idempotent};

/// How often a job that cannot be done now is tried again.
const RETRIES: u32 = 5;

/// What is pushed.
#[derive(Clone, Debug)]
struct Charge {
    order: &'static str,
    cents: u64,
    is_last: bool,
}

/// Charges an order.
#[idempotent(
    name = "jobs.charge",
    // What the job is about; never the id that apalis gives it, which is new on every push.
    key = order,
    // The same order with another amount is a mistake, and is refused.
    payload = cents,
    ttl = "14d",
    // A worker that waits works on nothing else.
    on_in_progress = reject,
    // `Busy`, the only error here, proves that nothing has happened.
    on_error = release,
)]
async fn charge(gateway: Gateway, order: &'static str, cents: u64) -> Result<u64, ChargeError> {
    gateway.charge(order, cents)
}

/// What apalis calls. It tries again by itself, since the retry layer of apalis does not know how
/// long to wait.
async fn job(
    job: Charge,
    gateway: Data<Gateway>,
    worker: WorkerContext,
) -> Result<(), BoxDynError> {
    // One after the other, so that this prints the same each time.
    let turn = Arc::clone(&gateway.turn);
    let _turn = turn.lock().await;
    let order = job.order;
    for _ in 0..=RETRIES {
        let charged = charge((*gateway).clone(), order, job.cents).await;
        match (delivery(&charged), charged) {
            (Delivery::Retry { after }, _) => {
                gateway.say(format!("{order}: tried again"));
                tokio::time::sleep(after).await;
                continue;
            }
            (Delivery::Park, _) => gateway.say(format!("{order}: put aside")),
            (Delivery::Ack, Ok(cents)) => gateway.say(format!("{order}: charged {cents}")),
            // Its answer is no longer to be had.
            (Delivery::Ack, Err(_)) => gateway.say(format!("{order}: done before")),
        }
        break;
    }
    if job.is_last {
        worker.stop()?;
    }
    Ok(())
}

fn delivery(charged: &Result<u64, ChargeError>) -> Delivery {
    match charged {
        Ok(_) => Delivery::Ack,
        Err(ChargeError::Busy) => Delivery::Retry {
            after: Duration::from_millis(50),
        },
        Err(ChargeError::Idem(error)) => error.delivery(),
    }
}

/// Charges cards, and is busy the first time that it hears of `o-2`.
#[derive(Clone, Debug, Default)]
struct Gateway {
    seen: Arc<Mutex<Seen>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    bodies: usize,
    charges: Vec<(&'static str, u64)>,
    was_busy: bool,
    said: Vec<String>,
}

impl Gateway {
    fn charge(&self, order: &'static str, cents: u64) -> Result<u64, ChargeError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.bodies += 1;
        if order == "o-2" && !std::mem::replace(&mut seen.was_busy, true) {
            return Err(ChargeError::Busy);
        }
        seen.charges.push((order, cents));
        Ok(cents)
    }

    fn say(&self, line: String) {
        println!("{line}");
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.said.push(line);
    }
}

#[derive(Debug)]
enum ChargeError {
    Busy,
    Idem(idem::Error),
}

impl From<idem::Error> for ChargeError {
    fn from(error: idem::Error) -> Self {
        Self::Idem(error)
    }
}

async fn run() -> Result<(), BoxDynError> {
    let engine = Engine::builder(MemoryStore::new()).build().await?;
    idem::install(engine)?;
    let gateway = Gateway::default();

    let mut queue = MemoryStorage::new();
    for (order, cents, is_last) in [
        ("o-1", 4_200, false),
        ("o-1", 4_200, false),
        ("o-1", 9_900, false),
        ("o-2", 1_700, true),
    ] {
        let charge = Charge {
            order,
            cents,
            is_last,
        };
        queue.push(charge).await?;
    }
    let worker = WorkerBuilder::new("charges")
        .backend(queue)
        .data(gateway.clone())
        .build(job);
    worker.run().await?;

    let seen = gateway.seen.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{} bodies ran, {} charges", seen.bodies, seen.charges.len());
    let said = [
        "o-1: charged 4200",
        "o-1: charged 4200",
        "o-1: put aside",
        "o-2: tried again",
        "o-2: charged 1700",
    ];
    if seen.said == said && seen.bodies == 3 && seen.charges == [("o-1", 4_200), ("o-2", 1_700)] {
        Ok(())
    } else {
        Err("a line above is not as it should be".into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
