//! Four processes with fifty tasks each call one key at once.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use idem::{Engine, Error, idempotent};
use libtest_mimic::Failed;
use tokio::sync::Barrier;

use crate::ledger::Ledger;
use crate::victim;

const PROCESSES: usize = 4;
const TASKS: usize = 50;
const ROUNDS: usize = 50;

#[idempotent(key = round, name = "race.effect", ttl = "1h", engine = engine)]
async fn effect(engine: Engine, ledger: Ledger, round: usize) -> Result<String, Error> {
    let line = format!("{round} {}", std::process::id());
    ledger.append(&line);
    Ok(line)
}

/// One process: reads a round's number, calls it from every task at once, and
/// prints each answer.
#[tokio::main]
pub(crate) async fn run(args: &[String]) {
    let [store, ledger] = args else {
        panic!("usage: racer STORE LEDGER");
    };
    let engine = victim::engine(store.as_ref()).await;
    let ledger = Ledger::at(ledger);
    println!("ready");
    for line in std::io::stdin().lines() {
        let round: usize = line.unwrap().parse().unwrap();
        let barrier = Arc::new(Barrier::new(TASKS));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..TASKS {
            let (engine, ledger, barrier) = (engine.clone(), ledger.clone(), Arc::clone(&barrier));
            tasks.spawn(async move {
                barrier.wait().await;
                effect(engine, ledger, round).await
            });
        }
        for answer in tasks.join_all().await {
            println!("{answer:?}");
        }
        std::io::stdout().flush().unwrap();
    }
    assert_eq!(engine.stats(), idem::Stats::default(), "everything ended");
}

struct Racer {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Racer {
    fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

pub(crate) fn four_processes() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut racers = (0..PROCESSES)
        .map(|_| {
            let mut child = Command::new(std::env::current_exe()?)
                .arg("racer")
                .arg(folder.path().join("store.db"))
                .arg(ledger.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            Ok(Racer {
                stdin: child.stdin.take().ok_or("no input")?,
                stdout: BufReader::new(child.stdout.take().ok_or("no output")?),
                child,
            })
        })
        .collect::<Result<Vec<_>, Failed>>()?;
    for racer in &mut racers {
        assert_eq!(racer.line()?, "ready");
    }
    for round in 0..ROUNDS {
        for racer in &mut racers {
            writeln!(racer.stdin, "{round}")?;
        }
        let mut answers = Vec::new();
        for racer in &mut racers {
            for _ in 0..TASKS {
                answers.push(racer.line()?);
            }
        }
        let effects = ledger.lines();
        let of_round: Vec<_> = effects
            .iter()
            .filter(|line| line.starts_with(&format!("{round} ")))
            .collect();
        assert_eq!(of_round.len(), 1, "one run in round {round}");
        let expected = format!("Ok({:?})", of_round[0]);
        for answer in &answers {
            assert_eq!(*answer, expected, "in round {round}");
        }
    }
    for racer in racers {
        drop(racer.stdin);
        let mut child = racer.child;
        assert!(child.wait()?.success(), "a racer failed");
    }
    Ok(())
}
