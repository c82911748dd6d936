//! A process is paused past its lease, another one comes, and then the first
//! goes on as if nothing had been.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use idem::{Error, Stats};
use libtest_mimic::{Failed, Trial};

use crate::ledger::Ledger;
use crate::place::{self, Kind};
use crate::victim::{self, AFTER_EFFECT, BEFORE_CHECK, BEFORE_EFFECT, GRACE, LEASE};

/// What must come of a pause: of the call that comes meanwhile (none where
/// nobody comes), of the paused call when it goes on, and of the ledger.
struct Row {
    mode: &'static str,
    /// Where the process is paused.
    at: &'static str,
    visitor: Option<Told>,
    zombie: Told,
    effects: usize,
}

/// What a call is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The answer of the effect that came first in the ledger.
    First,
    /// That of the second.
    Second,
    /// `UnknownOutcome`.
    Unknown,
    /// An error of the engine's own, and no answer.
    NotHeld,
}

const fn row(
    mode: &'static str,
    at: &'static str,
    visitor: Option<Told>,
    zombie: Told,
    effects: usize,
) -> Row {
    Row {
        mode,
        at,
        visitor,
        zombie,
        effects,
    }
}

/// The guarantee table, for holders that are paused and not dead.
const TABLE: &[Row] = &[
    // Nobody came: it was late, and that is all.
    row("refuse", BEFORE_EFFECT, None, Told::First, 1),
    row("refuse", AFTER_EFFECT, None, Told::First, 1),
    row("rerun", AFTER_EFFECT, None, Told::First, 1),
    row("recover", AFTER_EFFECT, None, Told::First, 1),
    // Somebody was told "unknown"; the late answer heals the record.
    row("refuse", BEFORE_EFFECT, Some(Told::Unknown), Told::First, 1),
    row("refuse", AFTER_EFFECT, Some(Told::Unknown), Told::First, 1),
    row(
        "refuse",
        BEFORE_CHECK,
        Some(Told::Unknown),
        Told::NotHeld,
        0,
    ),
    // Somebody ran again: the late one is told what is recorded, never its own.
    row("rerun", AFTER_EFFECT, Some(Told::Second), Told::Second, 2),
    row("rerun", BEFORE_CHECK, Some(Told::First), Told::NotHeld, 1),
    // The loss that `rerun` and `recover` have: the effect came after the look.
    row("rerun", BEFORE_EFFECT, Some(Told::First), Told::First, 2),
    row("recover", BEFORE_EFFECT, Some(Told::First), Told::First, 2),
    // The probe sees the effect.
    row("recover", AFTER_EFFECT, Some(Told::First), Told::First, 1),
    row("recover", BEFORE_CHECK, Some(Told::First), Told::NotHeld, 1),
];

pub(crate) fn cases() -> impl Iterator<Item = Trial> {
    TABLE.iter().flat_map(|row| {
        Kind::ALL.iter().map(move |&kind| {
            let visitor = if row.visitor.is_some() {
                "visited"
            } else {
                "alone"
            };
            let name = format!(
                "zombie::{}::{}::{}::{visitor}",
                kind.name(),
                row.mode,
                row.at
            );
            Trial::test(name, move || case(kind, row))
        })
    })
}

/// The process that is paused.
struct Zombie {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Zombie {
    fn start(row: &Row, store: &str, ledger: &Ledger) -> Result<Self, Failed> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["victim", row.mode, row.at, store])
            .arg(ledger.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self {
            stdin: child.stdin.take().ok_or("no input")?,
            stdout: BufReader::new(child.stdout.take().ok_or("no output")?),
            child,
        })
    }

    fn line(&mut self) -> Result<String, Failed> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn signal(&self, name: &str) -> Result<(), Failed> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status()?;
        if sent.success() {
            return Ok(());
        }
        Err("no signal was sent".into())
    }
}

impl Drop for Zombie {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn case(kind: Kind, row: &Row) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let store = kind.place(folder.path());
    let ledger = Ledger::at(folder.path().join("ledger"));
    let mut zombie = Zombie::start(row, &store, &ledger)?;
    if zombie.line()? != format!("AT {}", row.at) {
        return Err("it did not come to its point".into());
    }
    zombie.signal("-STOP")?;

    let runtime = tokio::runtime::Runtime::new()?;
    let call = |ledger: &Ledger| {
        let (store, ledger) = (store.clone(), ledger.clone());
        runtime.block_on(async move {
            let engine = place::engine(&store).await;
            let answer = victim::call(row.mode, engine.clone(), ledger, String::new()).await;
            assert_eq!(engine.stats(), Stats::default(), "everything ended");
            answer
        })
    };
    if row.visitor.is_some() {
        // Waits until the lease and the grace are over.
        told("the visitor", row.visitor, &call(&ledger), &ledger)?;
    } else {
        // The pause is the fault: it must be longer than the lease.
        std::thread::sleep(LEASE + GRACE + Duration::from_millis(100));
    }
    zombie.signal("-CONT")?;
    writeln!(zombie.stdin, "go on")?;
    let ended = zombie.line()?;
    let lines = ledger.lines();
    let expected = match row.zombie {
        Told::First => format!("ENDED Ok({:?})", lines.first().ok_or("no effect")?),
        Told::Second => format!("ENDED Ok({:?})", lines.get(1).ok_or("no second effect")?),
        Told::NotHeld | Told::Unknown => "ENDED Err".to_owned(),
    };
    if !ended.starts_with(&expected) || lines.len() != row.effects {
        return Err(format!(
            "expected {expected} and {} effects, found {ended} and {lines:?}",
            row.effects
        )
        .into());
    }
    // What a later call is told is what is recorded.
    let last = match row.zombie {
        Told::NotHeld => row.visitor,
        answered => Some(answered),
    };
    told("a later call", last, &call(&ledger), &ledger)
}

fn told(
    who: &str,
    expected: Option<Told>,
    answer: &Result<String, Error>,
    ledger: &Ledger,
) -> Result<(), Failed> {
    let lines = ledger.lines();
    let found = match answer {
        Err(Error::UnknownOutcome { .. }) => Some(Told::Unknown),
        Ok(line) if lines.first() == Some(line) => Some(Told::First),
        Ok(line) if lines.get(1) == Some(line) => Some(Told::Second),
        _ => None,
    };
    if found == expected {
        return Ok(());
    }
    Err(
        format!("{who} expected {expected:?}, was told {answer:?}; the ledger has {lines:?}")
            .into(),
    )
}
