//! `kill -9` at every point of a call, in every mode; then the same call in
//! another process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use idem::{Error, fault};
use libtest_mimic::{Failed, Trial};

use crate::ledger::Ledger;
use crate::place::{self, Kind};
use crate::victim::{self, AFTER_EFFECT, BEFORE_EFFECT};

const MODES: &[&str] = &["refuse", "rerun", "recover"];

/// How far the victim had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The store had not heard of it.
    Unreserved,
    /// Reserved, and no effect yet.
    Reserved,
    /// The effect has happened, and is not recorded.
    Effect,
    /// The answer is recorded.
    Recorded,
}

fn stage(point: &str) -> Stage {
    match point {
        "before-reserve" => Stage::Unreserved,
        "reserve-committed" | "after-reserve" | "before-body" | BEFORE_EFFECT => Stage::Reserved,
        AFTER_EFFECT | "after-body" | "before-complete" => Stage::Effect,
        "complete-committed" | "after-complete" => Stage::Recorded,
        other => panic!("the stage of {other} is not known"),
    }
}

pub(crate) fn cases() -> impl Iterator<Item = Trial> {
    let points = fault::POINTS.iter().chain(&[BEFORE_EFFECT, AFTER_EFFECT]);
    points.flat_map(|&point| {
        Kind::ALL.iter().flat_map(move |&kind| {
            MODES.iter().map(move |&mode| {
                let name = format!("kill::{}::{mode}::{point}", kind.name());
                Trial::test(name, move || case(kind, mode, point))
            })
        })
    })
}

fn case(kind: Kind, mode: &str, point: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let store = kind.place(folder.path());
    let ledger = Ledger::at(folder.path().join("ledger"));

    let mut child = Command::new(std::env::current_exe()?)
        .args(["victim", mode, point, &store])
        .arg(ledger.path())
        // Open and silent: a line would wake it.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let reached = wait_for_point(&mut child, point);
    // SIGKILL: nothing of the process runs after it.
    child.kill()?;
    child.wait()?;
    reached?;

    let runtime = tokio::runtime::Runtime::new()?;
    let (first, second) = runtime.block_on(async {
        let engine = place::engine(&store).await;
        let first = victim::call(mode, engine.clone(), ledger.clone(), String::new()).await;
        let second = victim::call(mode, engine.clone(), ledger.clone(), String::new()).await;
        assert_eq!(engine.stats(), idem::Stats::default(), "everything ended");
        (first, second)
    });
    check(mode, stage(point), &first, &ledger.lines())?;
    if first.is_ok() && first != second {
        return Err(format!("answered {first:?}, then {second:?}").into());
    }
    Ok(())
}

pub(crate) fn wait_for_point(child: &mut Child, point: &str) -> Result<(), Failed> {
    let stdout = child.stdout.take().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    if line.trim_end() == format!("AT {point}") {
        return Ok(());
    }
    Err(format!("the victim did not stop at {point} but said {line:?}").into())
}

/// The guarantee table.
fn check(
    mode: &str,
    stage: Stage,
    answer: &Result<String, Error>,
    ledger: &[String],
) -> Result<(), Failed> {
    let unknown = matches!(answer, Err(Error::UnknownOutcome { .. }));
    let (effects, refused) = match (mode, stage) {
        (_, Stage::Unreserved | Stage::Recorded) => (1, false),
        ("refuse", Stage::Reserved) => (0, true),
        ("refuse", Stage::Effect) => (1, true),
        (_, Stage::Reserved) => (1, false),
        // At least once, as its name says.
        ("rerun", Stage::Effect) => (2, false),
        (_, Stage::Effect) => (1, false),
    };
    if ledger.len() != effects || unknown != refused || answer.is_ok() == refused {
        return Err(format!(
            "expected {effects} effects and {}, found {ledger:?} and {answer:?}",
            if refused {
                "UnknownOutcome"
            } else {
                "an answer"
            },
        )
        .into());
    }
    if let (Ok(answer), Some(last)) = (answer, ledger.last())
        && answer != last
    {
        return Err(format!("answered {answer:?}, the effect was {last:?}").into());
    }
    let keys: std::collections::HashSet<_> = ledger.iter().map(|line| &line[..64]).collect();
    if keys.len() > 1 {
        return Err("attempts sent different downstream keys".into());
    }
    Ok(())
}
