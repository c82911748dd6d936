//! A body of three steps, killed after each of them and inside of each: what has
//! finished has its effect once.

use std::process::{Command, Stdio};
use std::time::Duration;

use idem::{Engine, Error, OnInProgress, OnUnknown, Recovered};
use libtest_mimic::{Failed, Trial};

use crate::kill::wait_for_point;
use crate::ledger::Ledger;
use crate::place::{self, Kind};
use crate::victim::stop_here;

const LABELS: [&str; 3] = ["reserve-stock", "capture", "send-mail"];
const MODES: &[&str] = &["rerun", "recover"];

/// Where the process is killed: `inside`, between a step's effect and its
/// record, or `after` the step.
const POINTS: [[&str; 2]; 3] = [
    ["inside-1", "after-1"],
    ["inside-2", "after-2"],
    ["inside-3", "after-3"],
];

pub(crate) fn cases() -> impl Iterator<Item = Trial> {
    Kind::ALL.iter().flat_map(|&kind| {
        MODES.iter().flat_map(move |&mode| {
            POINTS.iter().flatten().map(move |&point| {
                let name = format!("steps::{}::{mode}::{point}", kind.name());
                Trial::test(name, move || case(kind, mode, point))
            })
        })
    })
}

fn case(kind: Kind, mode: &str, point: &'static str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let store = kind.place(folder.path());
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut child = Command::new(std::env::current_exe()?)
        .args(["stepper", mode, point, &store])
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
    let answer = runtime.block_on(async {
        let engine = place::successor_engine(&store).await;
        call(mode, &engine, ledger.clone(), "").await
    })?;
    let lines = ledger.lines();
    for (number, label) in (1..).zip(LABELS) {
        let of_label = |line: &&String| line.starts_with(&format!("{label} "));
        let effects: Vec<_> = lines.iter().filter(of_label).collect();
        let in_doubt = point == format!("inside-{number}");
        if effects.len() != if in_doubt { 2 } else { 1 } {
            return Err(format!("killed {point}, found {lines:?}").into());
        }
        // A step in doubt runs again, and says that it is the same.
        let keys = effects.iter().map(|line| line.split(' ').nth(1));
        if keys.collect::<std::collections::HashSet<_>>().len() != 1 {
            return Err(format!("{label} sent different downstream keys").into());
        }
        // What it gave is what the first one gave, or the second after a doubt.
        if answer.get(number - 1) != effects.last().copied() {
            return Err(format!("answered {answer:?}, found {lines:?}").into());
        }
    }
    Ok(())
}

/// One step: a line in the ledger, with a stop after it.
async fn effect(
    label: &'static str,
    ledger: &Ledger,
    stop: &str,
    points: [&'static str; 2],
) -> Result<String, Error> {
    let [inside, after] = points;
    let line = idem::step(label, async {
        let context = idem::context()?;
        let line = format!(
            "{label} {} {}",
            context.downstream_key(label),
            context.attempt()
        );
        ledger.append(&line);
        if stop == inside {
            stop_here(inside).await;
        }
        Ok::<_, Error>(line)
    })
    .await?;
    if stop == after {
        stop_here(after).await;
    }
    Ok(line)
}

async fn call(
    mode: &str,
    engine: &Engine,
    ledger: Ledger,
    stop: &str,
) -> Result<Vec<String>, Error> {
    let stop = stop.to_owned();
    let body = async move {
        let mut lines = Vec::new();
        for (label, points) in LABELS.into_iter().zip(POINTS) {
            lines.push(effect(label, &ledger, &stop, points).await?);
        }
        Ok(lines)
    };
    let call = engine
        .call("crash.steps", &7, Duration::from_secs(3_600))
        .on_in_progress(OnInProgress::Wait(Duration::from_secs(10)));
    match mode {
        "rerun" => call.on_unknown(OnUnknown::Rerun).run(body).await,
        // The whole is not done, whatever has finished of it.
        _ => {
            call.run_or_recover(async { Ok(Recovered::NotDone) }, body)
                .await
        }
    }
}

/// Runs up to a point and waits there to be killed.
#[tokio::main]
pub(crate) async fn run(args: &[String]) {
    let [mode, stop, store, ledger] = args else {
        panic!("usage: stepper MODE POINT STORE LEDGER");
    };
    let engine = place::engine(store).await;
    let answer = call(mode, &engine, Ledger::at(ledger), stop).await;
    println!("ENDED {answer:?}");
}
