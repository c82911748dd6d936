//! SIGTERM while bodies run: shutdown waits for those that end in time, and
//! marks the others unknown.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use idem::{Engine, Error, UnknownReason, idempotent};
use libtest_mimic::{Failed, Trial};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::ledger::Ledger;
use crate::place::{self, Kind};

/// How long shutdown waits.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bodies of each kind.
const BODIES: u32 = 5;

/// A body that ends when the signal has come, or never.
#[idempotent(key = (key, ends), name = "shutdown.effect", ttl = "1h", engine = engine)]
async fn effect(
    engine: Engine,
    ledger: Ledger,
    key: u32,
    ends: bool,
    _begun: mpsc::Sender<()>,
    _signalled: watch::Receiver<bool>,
) -> Result<u32, Error> {
    ledger.append(&format!("{key} {ends}"));
    _begun.send(()).await.ok();
    let mut signalled = _signalled;
    signalled.wait_for(|come| *come).await.ok();
    if !ends {
        std::future::pending::<()>().await;
    }
    Ok(key)
}

fn calls(
    engine: &Engine,
    ledger: &Ledger,
    begun: &mpsc::Sender<()>,
    signalled: &watch::Receiver<bool>,
) -> Vec<impl Future<Output = Result<u32, Error>> + use<>> {
    let all = (0..BODIES).flat_map(|key| [(key, true), (key, false)]);
    all.map(|(key, ends)| {
        let (begun, signalled) = (begun.clone(), signalled.clone());
        effect(engine.clone(), ledger.clone(), key, ends, begun, signalled)
    })
    .collect()
}

/// The process that gets the signal.
#[tokio::main]
pub(crate) async fn run(args: &[String]) {
    let [store, ledger] = args else {
        panic!("usage: drainer STORE LEDGER");
    };
    let mut term = signal(SignalKind::terminate()).unwrap();
    let engine = place::engine(store).await;
    let (begin, mut begun) = mpsc::channel(1);
    let (come, signalled) = watch::channel(false);
    for call in calls(&engine, &Ledger::at(ledger), &begin, &signalled) {
        tokio::spawn(call);
    }
    for _ in 0..2 * BODIES {
        begun.recv().await.unwrap();
    }
    println!("running");
    term.recv().await.unwrap();
    let down = tokio::spawn(async move { engine.shutdown(PATIENCE).await });
    come.send(true).unwrap();
    println!("{}", down.await.unwrap().unwrap().unknown);
}

pub(crate) fn cases() -> impl Iterator<Item = Trial> {
    Kind::ALL.iter().map(|&kind| {
        let name = format!(
            "shutdown::{}::a_signal_drains_what_ends_in_time",
            kind.name()
        );
        Trial::test(name, move || case(kind))
    })
}

fn case(kind: Kind) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let store = kind.place(folder.path());
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut child = Command::new(std::env::current_exe()?)
        .args(["drainer", &store])
        .arg(ledger.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let running = said.next().ok_or("it did not begin")??;
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status()?;
    let unknown = said.next().ok_or("it did not shut down")??;
    let ended = child.wait()?;
    assert_eq!(running, "running");
    assert!(sent.success() && ended.success(), "{ended}");
    assert_eq!(unknown, BODIES.to_string(), "those that never end");

    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let engine = place::engine(&store).await;
        let (begin, _begun) = mpsc::channel(1);
        let (_come, signalled) = watch::channel(true);
        let calls = calls(&engine, &ledger, &begin, &signalled);
        for (number, call) in calls.into_iter().enumerate() {
            let (key, ends) = (u32::try_from(number / 2).unwrap(), number % 2 == 0);
            match call.await {
                Ok(answer) => assert_eq!((answer, ends), (key, true)),
                Err(Error::UnknownOutcome { reason, .. }) => {
                    assert_eq!((reason, ends), (UnknownReason::ShutDown, false));
                }
                Err(other) => panic!("{key} {ends}: {other:?}"),
            }
        }
        assert_eq!(engine.stats(), idem::Stats::default(), "everything ended");
    });
    let mut lines = ledger.lines();
    lines.sort();
    lines.dedup();
    assert_eq!(
        (lines.len(), ledger.lines().len()),
        (10, 10),
        "one run each"
    );
    Ok(())
}
