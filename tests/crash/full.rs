//! A disk that is full: nothing runs that was not reserved, and an answer that
//! finds no space is recorded when there is space again.
//!
//! Once on a small disk in memory, in a name space of a process of its own, where
//! another file takes the space; and once with a limit on the size of files,
//! which needs no rights.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::store::SqliteStore;
use idem::{Engine, Error, How, Outcome, Stats};
use libtest_mimic::{Failed, Trial};

const TTL: Duration = Duration::from_secs(3_600);
/// Longer than all that the file has space for already.
const ANSWER: usize = 500_000;

/// A process whose mounts nobody else sees.
const APART: [&str; 5] = ["unshare", "--map-root-user", "--mount", "sh", "-c"];
const MOUNT: &str = "mount -t tmpfs -o size=4m tmpfs";

/// Whether this user may mount a disk; otherwise that case is counted as
/// ignored.
fn may_mount() -> bool {
    let mut command = Command::new(APART[0]);
    command.args(&APART[1..]).arg(format!("{MOUNT} /mnt"));
    command.output().is_ok_and(|output| output.status.success())
}

pub(crate) fn cases() -> impl Iterator<Item = Trial> {
    [
        Trial::test("full::sqlite::a_full_disk", || {
            let mount = format!("{MOUNT} \"$1\" && exec \"$0\" full \"$1\" disk");
            case(&APART, &mount)
        })
        .with_ignored_flag(!may_mount()),
        Trial::test("full::sqlite::a_file_that_may_not_grow", || {
            // Who ignores the signal gets an error.
            case(&["sh", "-c"], "trap '' XFSZ; exec \"$0\" full \"$1\" limit")
        }),
    ]
    .into_iter()
}

/// Runs the rest of this file in a process that a script prepares.
fn case(shell: &[&str], script: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .arg(script)
        .arg(std::env::current_exe()?)
        .arg(folder.path())
        .output()?;
    if output.status.success() && output.stdout == b"it was full\n" {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// What takes the space.
#[derive(Debug, Clone)]
enum Hog {
    File(PathBuf),
    Limit { on: PathBuf },
}

impl Hog {
    fn fill(&self) {
        let path = match self {
            Self::File(path) => path,
            Self::Limit { on } => {
                let size = std::fs::metadata(on).unwrap().len();
                return limit(&format!("{size}:unlimited"));
            }
        };
        let mut file = File::create_new(path).unwrap();
        for size in [65_536, 4_096, 1] {
            let error = loop {
                if let Err(error) = file.write_all(&vec![0; size]) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::StorageFull);
        }
    }

    fn leave(&self) {
        match self {
            Self::File(path) => std::fs::remove_file(path).unwrap(),
            Self::Limit { .. } => limit("unlimited:unlimited"),
        }
    }
}

/// Sets how large files of this process may become.
fn limit(size: &str) {
    let pid = std::process::id().to_string();
    let mut command = Command::new("prlimit");
    command.args(["--pid", &pid, &format!("--fsize={size}")]);
    assert!(command.status().unwrap().success());
}

async fn call(
    engine: &Engine,
    key: usize,
    runs: &Arc<AtomicUsize>,
) -> (Result<String, Error>, Outcome) {
    let runs = Arc::clone(runs);
    let call = engine.call("full", &key, TTL);
    call.run_detailed(async move {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok("short".to_owned())
    })
    .await
}

#[tokio::main]
pub(crate) async fn run(args: &[String]) {
    let [folder, how] = args else {
        panic!("usage: full FOLDER disk|limit");
    };
    let folder = Path::new(folder);
    let hog = match how.as_str() {
        "disk" => Hog::File(folder.join("hog")),
        _ => Hog::Limit {
            on: folder.join("store.db-wal"),
        },
    };
    let runs = Arc::<AtomicUsize>::default();
    let store = SqliteStore::open(folder.join("store.db")).await.unwrap();
    let engine = Engine::builder(store)
        .store_timeout(Duration::from_millis(200))
        .reserve_timeout(Duration::from_millis(200))
        .build()
        .await
        .unwrap();
    // The disk fills up while a body runs.
    let body = {
        let hog = hog.clone();
        async move {
            hog.fill();
            Ok::<_, Error>("x".repeat(ANSWER))
        }
    };
    let long = engine.call("full.long", &1, TTL);
    let (answer, outcome) = long.run_detailed(body).await;
    assert_eq!(answer.unwrap().len(), ANSWER, "the effect has happened");
    assert!(!outcome.recorded);

    // Whoever cannot reserve does not run.
    let mut key = 0;
    let refused = loop {
        let before = runs.load(Ordering::SeqCst);
        match call(&engine, key, &runs).await.0 {
            Ok(_) => key += 1,
            Err(error) => {
                assert_eq!(runs.load(Ordering::SeqCst), before);
                break error;
            }
        }
    };
    assert!(matches!(refused, Error::Store(_)), "{refused:?}");
    assert_eq!(engine.stats().attempts, 1, "told in the background");

    hog.leave();
    while engine.stats() != Stats::default() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let long = engine.call("full.long", &1, TTL);
    let (again, outcome) = long
        .run_detailed(async { Ok::<_, Error>(String::new()) })
        .await;
    assert_eq!((again.unwrap().len(), outcome.how), (ANSWER, How::Replayed));
    let (_, outcome) = call(&engine, key, &runs).await;
    assert_eq!(outcome.how, How::Executed);
    for ran in 0..key {
        let (_, outcome) = call(&engine, ran, &runs).await;
        assert_eq!(outcome.how, How::Replayed, "{ran}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), key + 1);
    println!("it was full");
}
