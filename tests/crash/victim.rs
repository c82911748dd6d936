//! The process that is killed, and the operation that it shares with the
//! survivor.

use std::io::Write as _;
use std::time::Duration;

use idem::{Engine, Error, Recovered, fault, idempotent};

use crate::ledger::Ledger;
use crate::place;

pub(crate) const LEASE: Duration = Duration::from_millis(500);
pub(crate) const GRACE: Duration = Duration::from_millis(100);

const KEY: u32 = 7;

/// Points inside of the body, which the library cannot know.
pub(crate) const BEFORE_EFFECT: &str = "body-before-effect";
/// As [`BEFORE_EFFECT`], but the body asks whether it is still held.
pub(crate) const BEFORE_CHECK: &str = "body-before-check";
pub(crate) const AFTER_EFFECT: &str = "body-after-effect";

/// Tells the parent where this process stands, and stays there until the parent
/// writes a line: never, if it is to be killed.
pub(crate) async fn stop_here(point: &'static str) {
    println!("AT {point}");
    std::io::stdout().flush().unwrap();
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
    if !matches!(line.await, Ok(Some(Ok(_)))) {
        std::future::pending::<()>().await;
    }
}

/// What one body does: a line in the ledger, with a stop before and after it.
async fn effect(ledger: Ledger, stop: String) -> Result<String, Error> {
    let context = idem::context()?;
    if stop == BEFORE_EFFECT {
        stop_here(BEFORE_EFFECT).await;
    }
    if stop == BEFORE_CHECK {
        stop_here(BEFORE_CHECK).await;
        context.ensure_held().await?;
    }
    let line = format!("{} {}", context.downstream_key("line"), context.attempt());
    ledger.append(&line);
    if stop == AFTER_EFFECT {
        stop_here(AFTER_EFFECT).await;
    }
    Ok(line)
}

/// Asks the ledger whether the effect happened.
fn look(ledger: &Ledger) -> Result<Recovered<String>, Error> {
    let key = idem::context()?.downstream_key("line");
    let found = ledger.lines().into_iter().find(|l| l.starts_with(&key));
    Ok(found.map_or(Recovered::NotDone, Recovered::Done))
}

#[idempotent(
    key = key,
    ttl = "1h",
    name = "crash.effect",
    engine = engine,
    on_in_progress = wait("10s")
)]
async fn refuse(engine: Engine, key: u32, ledger: Ledger, stop: String) -> Result<String, Error> {
    effect(ledger, stop).await
}

#[idempotent(
    key = key,
    ttl = "1h",
    name = "crash.effect",
    engine = engine,
    on_in_progress = wait("10s"),
    on_unknown = rerun
)]
async fn rerun(engine: Engine, key: u32, ledger: Ledger, stop: String) -> Result<String, Error> {
    effect(ledger, stop).await
}

#[idempotent(
    key = key,
    ttl = "1h",
    name = "crash.effect",
    engine = engine,
    on_in_progress = wait("10s"),
    on_unknown = recover(async { look(&ledger) })
)]
async fn recover(engine: Engine, key: u32, ledger: Ledger, stop: String) -> Result<String, Error> {
    effect(ledger, stop).await
}

/// Calls the operation in a mode; an empty `stop` is none.
pub(crate) async fn call(
    mode: &str,
    engine: Engine,
    ledger: Ledger,
    stop: String,
) -> Result<String, Error> {
    match mode {
        "refuse" => refuse(engine, KEY, ledger, stop).await,
        "rerun" => rerun(engine, KEY, ledger, stop).await,
        "recover" => recover(engine, KEY, ledger, stop).await,
        other => panic!("there is no mode {other}"),
    }
}

/// Runs up to a point and waits there to be killed or woken.
#[tokio::main]
pub(crate) async fn die(args: &[String]) {
    let [mode, stop, store, ledger] = args else {
        panic!("usage: victim MODE POINT STORE LEDGER");
    };
    if let Some(point) = fault::POINTS.iter().copied().find(|point| point == stop) {
        fault::set(point, move || stop_here(point));
    }
    let engine = place::engine(store).await;
    let answer = call(mode, engine.clone(), Ledger::at(ledger), stop.clone()).await;
    // What could not be recorded at once is told to the store first.
    engine.shutdown(Duration::from_secs(10)).await.unwrap();
    println!("ENDED {answer:?}");
}
