//! Four processes race: fifty tasks of each for one key, fifty times; and each
//! of a thousand keys twenty times, in random order.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;

use idem::{Engine, Error, idempotent};
use libtest_mimic::{Failed, Trial};
use tokio::sync::{Barrier, Semaphore};

use crate::ledger::Ledger;
use crate::partner::Partner;
use crate::place::{self, Kind};

const PROCESSES: usize = 4;
/// Calls of one key at once in each process, and how often.
const TASKS: usize = 50;
const ROUNDS: usize = 50;
/// Keys, and calls of each in each process.
const KEYS: usize = 1_000;
const CALLS: usize = 5;

#[idempotent(key = key, name = "race.effect", ttl = "1h", engine = engine)]
async fn effect(engine: Engine, ledger: Ledger, key: usize) -> Result<String, Error> {
    let line = format!("{key} {}", std::process::id());
    ledger.append(&line);
    Ok(line)
}

/// One process: does what each line of its input says, and prints each answer.
#[tokio::main]
pub(crate) async fn run(args: &[String]) {
    let [store, ledger] = args else {
        panic!("usage: racer STORE LEDGER");
    };
    let engine = place::patient_engine(store).await;
    let ledger = Ledger::at(ledger);
    println!("ready");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (what, number) = line.split_once(' ').unwrap();
        let number: usize = number.parse().unwrap();
        let answers = match what {
            "together" => together(&engine, &ledger, number).await,
            "spread" => spread(&engine, &ledger, number).await,
            other => panic!("a racer does not know {other:?}"),
        };
        for answer in answers {
            println!("{answer}");
        }
        std::io::stdout().flush().unwrap();
    }
    assert_eq!(engine.stats(), idem::Stats::default(), "everything ended");
}

/// Calls one key from every task at once.
async fn together(engine: &Engine, ledger: &Ledger, key: usize) -> Vec<String> {
    let barrier = Arc::new(Barrier::new(TASKS));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let (engine, ledger, barrier) = (engine.clone(), ledger.clone(), Arc::clone(&barrier));
        tasks.spawn(async move {
            barrier.wait().await;
            format!("{key} {:?}", effect(engine, ledger, key).await)
        });
    }
    tasks.join_all().await
}

/// Calls every key a few times, in an order that `seed` decides, 32 at once.
async fn spread(engine: &Engine, ledger: &Ledger, seed: usize) -> Vec<String> {
    let mut keys: Vec<usize> = (0..KEYS * CALLS).map(|at| at % KEYS).collect();
    let mut state = u64::try_from(seed).unwrap() + 1;
    for at in (1..keys.len()).rev() {
        // xorshift: any order will do, as long as the seed repeats it.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let span = u64::try_from(at + 1).unwrap();
        keys.swap(at, usize::try_from(state % span).unwrap());
    }
    let permits = Arc::new(Semaphore::new(32));
    let mut tasks = tokio::task::JoinSet::new();
    for key in keys {
        let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
        let (engine, ledger) = (engine.clone(), ledger.clone());
        tasks.spawn(async move {
            let answer = effect(engine, ledger, key).await;
            drop(permit);
            format!("{key} {answer:?}")
        });
    }
    tasks.join_all().await
}

pub(crate) fn cases() -> impl Iterator<Item = Trial> {
    Kind::ALL.iter().flat_map(|&kind| {
        let name = |what| format!("race::{}::{what}", kind.name());
        [
            Trial::test(name("one_key_from_four_processes"), move || one_key(kind)),
            Trial::test(name("a_thousand_keys_from_four_processes"), move || {
                thousand_keys(kind)
            }),
        ]
    })
}

/// Starts the racers, has them do each of `rounds`, and checks what they say
/// against what they did.
fn race(
    kind: Kind,
    rounds: impl Iterator<Item = String>,
    answers: usize,
) -> Result<Vec<String>, Failed> {
    let folder = tempfile::tempdir()?;
    let place = kind.place(folder.path());
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut racers = (0..PROCESSES)
        .map(|_| Partner::start("racer", &place, &ledger, &[]))
        .collect::<Result<Vec<_>, _>>()?;
    let mut told = Vec::new();
    for round in rounds {
        for (number, racer) in racers.iter_mut().enumerate() {
            // Each gets another order, all the same key.
            racer.tell(&round.replace('#', &number.to_string()))?;
        }
        for racer in &mut racers {
            for _ in 0..answers {
                told.push(racer.line()?);
            }
        }
    }
    for racer in racers {
        racer.end()?;
    }
    let mut effects = HashMap::new();
    for line in ledger.lines() {
        let key = line.split(' ').next().unwrap_or_default().to_owned();
        let before = effects.insert(key, format!("Ok({line:?})"));
        assert_eq!(before, None, "a second run: {line}");
    }
    for line in told {
        let (key, answer) = line.split_once(' ').ok_or("no answer")?;
        assert_eq!(Some(answer), effects.get(key).map(String::as_str), "{key}");
    }
    Ok(effects.into_keys().collect())
}

fn one_key(kind: Kind) -> Result<(), Failed> {
    let rounds = (0..ROUNDS).map(|round| format!("together {round}"));
    assert_eq!(race(kind, rounds, TASKS)?.len(), ROUNDS);
    Ok(())
}

fn thousand_keys(kind: Kind) -> Result<(), Failed> {
    let rounds = std::iter::once("spread #".to_owned());
    assert_eq!(race(kind, rounds, KEYS * CALLS)?.len(), KEYS);
    Ok(())
}
