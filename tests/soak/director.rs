//! Starts the processes, disturbs them, and tells how it went.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use idem::Outcome;

use crate::audit::{self, Disturbance, Verdict};
use crate::dice::Dice;
use crate::journal::{self, Journal, Told, now_us};
use crate::place::{self, Kind};
use crate::proxy::Proxy;
use crate::victim::{GRACE, LEASE};
use crate::within::{self, Database};
use crate::worker::describe;
use crate::workload::{self, Answer, OPERATIONS, Order};

const PROCESSES: usize = 2;
/// What was on its way when a process was held up is late by a lease and grace.
#[expect(clippy::cast_possible_truncation, reason = "600,000")]
const LATE_US: u64 = LEASE.as_micros() as u64 + GRACE.as_micros() as u64;
const CALLERS: &str = "6";

/// Soaks every store, and returns whether every promise was kept.
pub(crate) fn soak(time: Duration, seed: u64, only: Option<&str>) -> bool {
    println!("soak: {} s, seed {seed}", time.as_secs());
    let mut dice = Dice::new(seed);
    let kinds = Kind::ALL.iter().copied();
    let wanted = kinds.filter(|kind| only.is_none_or(|only| kind.name().contains(only)));
    let threads: Vec<_> = wanted
        .map(|kind| {
            let dice = Dice::new(dice.roll());
            std::thread::spawn(move || (kind, Site::open(kind, dice).soak(time)))
        })
        .collect();
    let mut passed = !threads.is_empty();
    for thread in threads {
        let (kind, (faults, verdict)) = thread.join().expect("a soak ends");
        passed &= verdict.violations.is_empty() && verdict.effects > 0;
        passed &= verdict.rows > 0 || !kind.is_sql();
        report(kind, &faults, &verdict);
    }
    println!(
        "soak: {}, seed {seed}",
        if passed {
            "every promise was kept"
        } else {
            "FAILED"
        }
    );
    passed
}

fn report(kind: Kind, faults: &[Fault], verdict: &Verdict) {
    let count = |wanted: &str| faults.iter().filter(|fault| fault.name == wanted).count();
    let faults: Vec<_> = FAULTS
        .iter()
        .map(|name| format!("{} {name}", count(name)))
        .collect();
    let told: Vec<_> = verdict
        .told
        .iter()
        .map(|(how, count)| format!("{count} {how}"))
        .collect();
    println!(
        "{:<20} {} keys, {} runs, {} rows in transactions, {} violations, {} second runs that rerun and recover allow, {} late",
        kind.name(),
        verdict.keys,
        verdict.effects,
        verdict.rows,
        verdict.violations.len(),
        verdict.allowed,
        verdict.late,
    );
    println!("    callers: {}", told.join(", "));
    println!("    faults:  {}", faults.join(", "));
    for violation in verdict.violations.iter().take(10) {
        println!("    VIOLATION {violation}");
    }
}

const FAULTS: &[&str] = &["killed", "paused", "locked out", "cut off", "kept waiting"];

/// A fault that was done to a store's processes.
#[derive(Debug, Clone, Copy)]
struct Fault {
    name: &'static str,
    time: Disturbance,
}

/// One store, its processes and its journal.
struct Site {
    kind: Kind,
    place: String,
    folder: tempfile::TempDir,
    dice: Dice,
    workers: Vec<Worker>,
    faults: Vec<Fault>,
    network: Option<Network>,
}

struct Worker {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start(place: &str, direct: &str, folder: &Path, seed: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["worker", place, direct])
            .arg(folder)
            .args([&seed.to_string(), CALLERS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut worker = Self { child, stdout };
        assert_eq!(worker.line(), "ready");
        worker
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets it finish what it has begun.
    fn end(mut self) {
        drop(self.child.stdin.take());
        assert_eq!(self.line(), "done", "a worker failed");
        assert!(self.child.wait().unwrap().success());
    }
}

/// A network of one store's own, between its workers and its server.
struct Network {
    place: String,
    proxy: Proxy,
    _runtime: tokio::runtime::Runtime,
}

impl Network {
    /// A cluster tells its own addresses, and a file has none.
    fn before(place: &str) -> Option<Self> {
        if !place.contains("127.0.0.1") || place.contains("redis-cluster:") {
            return None;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        // Of a tiered store, that of the store behind.
        let (proxy, place) = runtime.block_on(Proxy::of_url(place));
        Some(Self {
            place,
            proxy,
            _runtime: runtime,
        })
    }
}

impl Site {
    fn open(kind: Kind, dice: Dice) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = kind.place(folder.path());
        Self {
            network: Network::before(&place),
            place,
            kind,
            folder,
            dice,
            workers: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn soak(mut self, time: Duration) -> (Vec<Fault>, Verdict) {
        self.create();
        for _ in 0..PROCESSES {
            self.start();
        }
        let end_us = now_us() + u64::try_from(time.as_micros()).unwrap();
        while now_us() < end_us {
            std::thread::sleep(self.dice.millis(200, 1_200));
            self.disturb();
        }
        for worker in std::mem::take(&mut self.workers) {
            worker.end();
        }
        let settled = self.settle();
        let faults = self.faults.iter().map(|fault| fault.time);
        let stalls = journal::stalls(self.folder.path()).into_iter();
        let stalls = stalls.map(|(pid, from_us, to_us)| Disturbance {
            pid: Some(pid),
            from_us,
            to_us: to_us + LATE_US,
        });
        let disturbed: Vec<_> = faults.chain(stalls).collect();
        let mut verdict = audit::audit(self.folder.path(), &settled, &disturbed);
        self.audit_within(&mut verdict);
        if !verdict.violations.is_empty() {
            let kept = self.folder.keep();
            println!("{}: its journal is in {}", self.kind.name(), kept.display());
        }
        (self.faults, verdict)
    }

    /// Makes the table for the calls in a transaction.
    fn create(&self) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            // Makes the file.
            let engine = place::engine(&self.place).await;
            if let Some(database) = Database::open(&self.place).await {
                database.create().await;
            }
            engine.shutdown(LEASE).await.unwrap();
        });
    }

    /// Calls every key of the calls in a transaction once more, and compares the
    /// rows with what was told.
    fn audit_within(&self, verdict: &mut Verdict) {
        let told = journal::told(self.folder.path()).into_iter();
        let told: Vec<Told> = told
            .filter(|line| line.operation == within::OPERATION)
            .collect();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let Some(database) = Database::open(&self.place).await else {
                return;
            };
            let engine = place::engine(&self.place).await;
            let database = Arc::new(database);
            let rows = database.rows().await;
            let mut keys: Vec<u64> = rows
                .iter()
                .map(|(key, _)| u64::try_from(*key).unwrap())
                .collect();
            keys.extend(told.iter().map(|line| line.key));
            keys.sort_unstable();
            keys.dedup();
            let mut settled = Vec::new();
            let folder = Arc::new(self.folder.path().to_owned());
            for key in keys {
                let journal = Journal::open(&folder);
                let order = Order::new(Arc::clone(&folder), journal, key, 0, 1_000);
                let (engine, database) = (engine.clone(), Arc::clone(&database));
                let call = async move { database.call(&engine, order).await };
                settled.push(line(within::OPERATION, key, 0, tokio::spawn(call).await));
            }
            let rows = database.rows().await;
            verdict.rows = rows.len();
            verdict
                .violations
                .extend(within::audit(&rows, &told, &settled));
        });
    }

    fn start(&mut self) {
        let seed = self.dice.roll();
        let network = self.network.as_ref();
        let place = network.map_or(&self.place, |network| &network.place);
        let worker = Worker::start(place, &self.place, self.folder.path(), seed);
        self.workers.push(worker);
    }

    fn disturb(&mut self) {
        let from_us = now_us();
        let at = usize::try_from(self.dice.below(2)).unwrap();
        let name = *self.dice.pick(FAULTS);
        let mut pid = None;
        match name {
            "killed" => {
                let worker = self.workers.swap_remove(at);
                pid = Some(worker.child.id());
                worker.kill();
                self.start();
            }
            "paused" => {
                // Past lease and grace, or not.
                let pause = self.dice.millis(100, 1_500);
                // Of a file it may hold the lock, in the midst of a transaction:
                // then it holds up everybody.
                pid = (self.kind != Kind::Sqlite).then(|| self.workers[at].child.id());
                self.workers[at].signal("-STOP");
                std::thread::sleep(pause);
                self.workers[at].signal("-CONT");
            }
            "locked out" => {
                let pause = self.dice.millis(100, 1_500);
                if !self.lock_out(pause) {
                    return;
                }
            }
            _ => {
                let pause = self.dice.millis(0, 1_500);
                let Some(network) = &self.network else {
                    return;
                };
                match (name, self.dice.percent(50)) {
                    ("cut off", true) => network.proxy.cut_present(),
                    ("cut off", false) => network.proxy.down(),
                    // Also when it speaks again: then the old ones stay silent.
                    (_, true) => network.proxy.silence_present(),
                    _ => network.proxy.silence(),
                }
                std::thread::sleep(pause);
                network.proxy.open();
            }
        }
        let time = Disturbance {
            pid,
            from_us,
            to_us: now_us() + LATE_US,
        };
        self.faults.push(Fault { name, time });
    }

    /// Holds the lock of a file that others write to.
    fn lock_out(&self, pause: Duration) -> bool {
        use idem::sqlx::{Connection as _, Executor as _, SqliteConnection};
        if self.kind != Kind::Sqlite {
            return false;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut conn = SqliteConnection::connect(&format!("sqlite://{}", self.place))
                .await
                .unwrap();
            if conn.execute("begin exclusive").await.is_ok() {
                tokio::time::sleep(pause).await;
                conn.execute("rollback").await.unwrap();
            }
            conn.close().await.unwrap();
        });
        true
    }

    /// Asks for every key once more, as a caller that refuses to run again,
    /// when nothing disturbs any more.
    fn settle(&self) -> Vec<Told> {
        let keys = journal::by_key(journal::effects(self.folder.path()));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        std::panic::set_hook(Box::new(|_| {}));
        runtime.block_on(async {
            let engine = place::engine(&self.place).await;
            let folder = Arc::new(self.folder.path().to_owned());
            let mut settled = Vec::new();
            for ((operation, key), effects) in keys {
                let named = |name: &&&str| ***name == operation;
                let operation = *OPERATIONS.iter().find(named).unwrap();
                // Its answers may have expired.
                if operation == "expire" {
                    continue;
                }
                let payload = effects[0].payload;
                let journal = Journal::open(&folder);
                let order = Order::new(Arc::clone(&folder), journal, key, payload, 1_000);
                let call = workload::call(operation, engine.clone(), order);
                settled.push(line(operation, key, payload, tokio::spawn(call).await));
            }
            settled
        })
    }
}

/// What a call was told that was made when nothing disturbed any more.
fn line(
    operation: &str,
    key: u64,
    payload: u64,
    ended: Result<(Answer, Option<Outcome>), tokio::task::JoinError>,
) -> Told {
    let (how, recorded, value) = match ended {
        Ok((answer, outcome)) => describe(answer, outcome.as_ref()),
        Err(_) => ("panicked".to_owned(), false, None),
    };
    Told {
        operation: operation.to_owned(),
        key,
        payload,
        at_us: now_us(),
        how,
        recorded,
        value,
    }
}
