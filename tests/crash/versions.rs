//! Four processes apply versions of the same keys at once, each in another
//! order; version 3 is delivered twice everywhere.

use std::io::Write as _;
use std::sync::Arc;

use idem::record::VersionBytes;
use idem::{Engine, Error, idempotent};
use libtest_mimic::{Failed, Trial};
use tokio::sync::Barrier;

use crate::ledger::Ledger;
use crate::partner::Partner;
use crate::place::{self, Kind};

const PROCESSES: usize = 4;
const KEYS: usize = 40;
const SENT: [u64; 5] = [1, 3, 2, 3, 4];

#[idempotent(key = key, version = version, payload = version, name = "versions.effect", ttl = "1h", engine = engine)]
async fn effect(engine: Engine, ledger: Ledger, key: usize, version: u64) -> Result<u64, Error> {
    ledger.append(&format!("{key} {version}"));
    Ok(version)
}

/// One process: applies every version of the key that each line names, all at
/// once, and prints what each was told.
#[tokio::main]
pub(crate) async fn run(args: &[String]) {
    let [store, ledger, number] = args else {
        panic!("usage: syncer STORE LEDGER NUMBER");
    };
    let engine = place::patient_engine(store).await;
    let ledger = Ledger::at(ledger);
    let number: usize = number.parse().unwrap();
    println!("ready");
    for line in std::io::stdin().lines() {
        let key: usize = line.unwrap().parse().unwrap();
        let mut sent = SENT;
        sent.rotate_left((number + key) % SENT.len());
        let barrier = Arc::new(Barrier::new(sent.len()));
        let mut calls = tokio::task::JoinSet::new();
        for version in sent {
            let (engine, ledger, barrier) = (engine.clone(), ledger.clone(), Arc::clone(&barrier));
            calls.spawn(async move {
                barrier.wait().await;
                let told = match effect(engine, ledger, key, version).await {
                    Ok(own) => format!("ok {own}"),
                    Err(Error::Stale { applied }) => {
                        let newer = applied > Some(VersionBytes::of(&version));
                        format!("stale {newer}")
                    }
                    Err(error) => format!("refused {error}"),
                };
                format!("{version} {told}")
            });
        }
        for told in calls.join_all().await {
            println!("{told}");
        }
        std::io::stdout().flush().unwrap();
    }
    assert_eq!(engine.stats(), idem::Stats::default(), "everything ended");
}

pub(crate) fn cases() -> impl Iterator<Item = Trial> {
    Kind::ALL.iter().map(|&kind| {
        let name = format!("versions::{}::only_rise_in_four_processes", kind.name());
        Trial::test(name, move || only_rise(kind))
    })
}

fn only_rise(kind: Kind) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let place = kind.place(folder.path());
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut syncers = (0..PROCESSES)
        .map(|number| Partner::start("syncer", &place, &ledger, &[number.to_string()]))
        .collect::<Result<Vec<_>, _>>()?;
    for key in 0..KEYS {
        for syncer in &mut syncers {
            syncer.tell(&key.to_string())?;
        }
        let mut told = Vec::new();
        for syncer in &mut syncers {
            for _ in SENT {
                told.push(syncer.line()?);
            }
        }
        let lines = ledger.lines();
        let of_key = |line: &String| line.strip_prefix(&format!("{key} "))?.parse().ok();
        let landed: Vec<u64> = lines.iter().filter_map(of_key).collect();
        judge(&landed, &told)?;
    }
    syncers.into_iter().try_for_each(Partner::end)
}

/// Each version landed once, in rising order and the highest last; who was told
/// `ok` had landed, and every other one was told that a newer one had.
fn judge(landed: &[u64], told: &[String]) -> Result<(), Failed> {
    let scene = format!("landed {landed:?}, told {told:?}");
    assert!(landed.is_sorted_by(|a, b| a < b), "{scene}");
    assert_eq!(landed.last(), Some(&4), "{scene}");
    for line in told {
        let (version, answer) = line.split_once(' ').ok_or("no answer")?;
        let version: u64 = version.parse()?;
        let own = format!("ok {version}");
        let is_fine = (answer == own && landed.contains(&version)) || answer == "stale true";
        assert!(is_fine, "{line}: {scene}");
        assert!(version < 4 || answer == own, "{line}: {scene}");
    }
    for version in landed {
        assert!(told.contains(&format!("{version} ok {version}")), "{scene}");
    }
    Ok(())
}
