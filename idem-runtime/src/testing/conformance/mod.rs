//! The conformance suite: the [contract of a store](crate::store) as tests, the
//! same for every store.
//!
//! A store decides who may run a body, so a mistake in it is a second charge.
//! Whoever writes a store, inside this library or outside of it, runs this
//! suite against it:
//!
//! 1. Implement [`Harness`]: it opens a store on a [`ManualClock`]. The suite
//!    moves that clock and never sleeps, so a store must take all of its time
//!    from a clock that can be given to it. A store whose server has the clock
//!    sends the time as a parameter under test.
//! 2. Call [`run_all`] in a test on a multi-threaded runtime, so that the topic
//!    `race` races. It panics with every case that failed and what it expected.
//! 3. Print the [`Report`]: a suite that ran nothing must not look like one that
//!    passed.
//!
//! Cases use the methods of [`Store`] and [`Renewer`](crate::store::Renewer) and
//! nothing else; what a row looks like is the store's own business. The
//! specification that they check is [`transition`](crate::transition).
//!
//! | topic | what it proves |
//! |---|---|
//! | `meta` | the first engine's settings stand, whoever comes later |
//! | `reserve` | every reply of a reservation, and that a payload is compared before anything stored is told |
//! | `complete` | an answer is recorded once, by its attempt, and never changes |
//! | `release` | only a holder lets the next caller run, and never over a doubt |
//! | `unknown` | an outcome in doubt stays so until it is settled |
//! | `takeover` | only what lapsed or is unknown, only by who asks for it, only so often |
//! | `renew` | a lease is the holder's to extend, in batches |
//! | `give_back` | a reservation whose body never ran is undone |
//! | `expiry` | TTLs, without any sweep, and what never expires |
//! | `sweep` | what is deleted, and what never is |
//! | `race` | one winner, however many ask at once |
//! | `key` | records do not touch each other |
//! | `answers` | bytes come back as they were given |
//! | `version` | an older message never runs after a newer one |
//! | `steps` | what a body has finished is for who takes over, and for no later life |
//! | `standings` | many records are looked at in one question, which changes nothing |
//! | `admin` | operators see what stands there, and settle it once, with a note |
//!
//! A store that [lacks](Store::lacks) what a case needs does not run it, and the
//! report says so.
//!
//! It does not prove that an acknowledged write survives a crash or a power
//! cut, nor what a store does on a network that drops replies; a store's own
//! tests must.
//!
//! # Examples
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::{Arc, Mutex};
//!
//! use idem::StoreError;
//! use idem::store::{MemoryStore, Store};
//! use idem::testing::ManualClock;
//! use idem::testing::conformance::{self, Harness};
//!
//! #[derive(Default)]
//! struct Memory(Mutex<HashMap<String, MemoryStore>>);
//!
//! impl Harness for Memory {
//!     async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
//!         let mut places = self.0.lock().unwrap();
//!         let new = || MemoryStore::with_clock(clock);
//!         Ok(Arc::new(places.entry(place.to_owned()).or_insert_with(new).clone()))
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() {
//! let report = conformance::run_all(Memory::default()).await;
//! assert_eq!(report.executed.len(), conformance::cases().count());
//! println!("{report}"); // memory: … cases
//! # }
//! ```

mod admin;
mod answers;
mod audit;
mod bench;
mod complete;
mod expiry;
mod finished;
mod give_back;
mod key;
mod meta;
mod race;
mod release;
mod renew;
mod reserve;
mod settle;
mod standings;
mod steps;
mod sweep;
mod takeover;
mod unknown;
mod version;

use std::fmt;
use std::pin::Pin;

use self::bench::Bench;
use crate::error::StoreError;
use crate::store::{Capability, Store};
use crate::sync::Arc;
use crate::testing::ManualClock;

/// Opens the store under test.
pub trait Harness: Send + Sync + 'static {
    /// Opens the store of the given place, on the given clock.
    ///
    /// A place is empty when its name is seen for the first time. Opened again,
    /// it has the same records, as if another process had opened it. Names have
    /// at most 63 lower-case letters, digits and `_`: a file, a schema, a prefix
    /// of keys.
    fn open(
        &self,
        place: &str,
        clock: ManualClock,
    ) -> impl Future<Output = Result<Arc<dyn Store>, StoreError>> + Send;
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`Harness`] without its type.
trait Open: Send + Sync {
    fn open<'a>(
        &'a self,
        place: &'a str,
        clock: ManualClock,
    ) -> Boxed<'a, Result<Arc<dyn Store>, StoreError>>;
}

impl<H: Harness> Open for H {
    fn open<'a>(
        &'a self,
        place: &'a str,
        clock: ManualClock,
    ) -> Boxed<'a, Result<Arc<dyn Store>, StoreError>> {
        Box::pin(Harness::open(self, place, clock))
    }
}

/// One test of the contract. Shown as `topic/name`.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// What it is about, such as `takeover`.
    pub topic: &'static str,
    /// What must hold, as a sentence with underscores.
    pub name: &'static str,
    /// What a store may lack, and then does not run it.
    pub needs: &'static [Capability],
    run: for<'a> fn(&'a Bench) -> Boxed<'a, ()>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.name)
    }
}

/// Lists the functions of a topic as its cases.
macro_rules! topic {
    ($topic:literal: $($name:ident),+ $(,)?) => {
        super::topic!(CASES, $topic, &[], $($name),+);
    };
    ($topic:literal needs $need:ident: $($name:ident),+ $(,)?) => {
        super::topic!(CASES, $topic, &[crate::store::Capability::$need], $($name),+);
    };
    ($cases:ident, $topic:literal, $needs:expr, $($name:ident),+ $(,)?) => {
        pub(super) const $cases: &[super::Case] = &[$(super::Case {
            topic: $topic,
            name: stringify!($name),
            needs: $needs,
            run: |bench| Box::pin($name(bench)),
        }),+];
    };
}
use topic;

const TOPICS: &[&[Case]] = &[
    meta::CASES,
    reserve::CASES,
    complete::CASES,
    release::CASES,
    unknown::CASES,
    takeover::CASES,
    renew::CASES,
    give_back::CASES,
    give_back::SWEPT,
    expiry::CASES,
    expiry::STEADY,
    sweep::CASES,
    race::CASES,
    key::CASES,
    answers::CASES,
    version::CASES,
    standings::CASES,
    admin::CASES,
    finished::CASES,
    settle::CASES,
    audit::CASES,
    audit::SWEPT,
    version::SWEPT,
    steps::CASES,
    steps::SWEPT,
    steps::SETTLED,
];

/// Lists every case, topic by topic.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    TOPICS.iter().copied().flatten()
}

/// What [`run_all`] has run. Shown as `memory: 200 cases`, or as
/// `redis: 188 cases, 12 not run without counted sweeps`.
#[derive(Debug, Clone)]
pub struct Report {
    /// The store's kind.
    pub store: &'static str,
    /// The cases that ran; all of them passed.
    pub executed: Vec<&'static Case>,
    /// The cases that need what the store says it lacks.
    pub not_run: Vec<&'static Case>,
    lacks: &'static [Capability],
}

impl Case {
    /// Returns the first thing that it needs and such a store lacks.
    fn misses(&self, lacks: &[Capability]) -> Option<Capability> {
        self.needs.iter().copied().find(|need| lacks.contains(need))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} cases", self.store, self.executed.len())?;
        for need in self.lacks {
            let lacking = |case: &&&Case| case.misses(self.lacks) == Some(*need);
            let count = self.not_run.iter().filter(lacking).count();
            if count > 0 {
                write!(f, ", {count} not run without {need}")?;
            }
        }
        Ok(())
    }
}

/// Runs every case, each in a place of its own, one after the other.
///
/// # Cancel safety
/// Dropping the future stops the suite after the case that runs.
///
/// # Panics
/// If a case fails, after all have run: with the name of each that failed and
/// what it expected. Outside of a tokio runtime.
pub async fn run_all(harness: impl Harness) -> Report {
    run(harness, cases()).await
}

/// Runs the cases of one topic, or the one case of a `topic/name`.
///
/// # Cancel safety
/// As [`run_all`].
///
/// # Panics
/// As [`run_all`], and if there is no such topic or case.
pub async fn run_only(harness: impl Harness, what: &str) -> Report {
    let chosen: Vec<_> = cases()
        .filter(|case| case.topic == what || case.to_string() == what)
        .collect();
    assert!(!chosen.is_empty(), "there is no topic or case `{what}`");
    run(harness, chosen.into_iter()).await
}

async fn run(harness: impl Harness, cases: impl Iterator<Item = &'static Case>) -> Report {
    let harness: Arc<dyn Open> = Arc::new(harness);
    let mut store = "";
    let mut lacks: &[Capability] = &[];
    let mut executed = Vec::new();
    let mut not_run = Vec::new();
    let mut failures = Vec::new();
    for case in cases {
        let harness = Arc::clone(&harness);
        // In a task of its own, so that a panic is this case's.
        let ran = tokio::spawn(async move {
            let bench = Bench::open(harness, place(case)).await;
            let lacks = bench.store.lacks();
            let runs = case.misses(lacks).is_none();
            if runs {
                (case.run)(&bench).await;
            }
            (bench.store.kind(), lacks, runs)
        });
        match ran.await {
            Ok((kind, lacking, runs)) => {
                (store, lacks) = (kind, lacking);
                if runs {
                    executed.push(case);
                } else {
                    not_run.push(case);
                }
            }
            Err(failed) => {
                failures.push(format!("{case}: {}", text(failed)));
                executed.push(case);
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} cases failed:\n{}",
        failures.len(),
        executed.len(),
        failures.join("\n")
    );
    Report {
        store,
        executed,
        not_run,
        lacks,
    }
}

fn place(case: &Case) -> String {
    format!("{}_{}", case.topic, case.name)
}

fn text(failed: tokio::task::JoinError) -> String {
    let Ok(panic) = failed.try_into_panic() else {
        return "its task was cancelled".to_owned();
    };
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast_ref::<&str>()
            .map_or("panicked", |text| text)
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_place_of_its_own() {
        let mut places: Vec<_> = cases().map(place).collect();
        for place in &places {
            assert!(place.len() <= 63, "{place} is too long");
            assert!(
                place
                    .bytes()
                    .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')),
                "{place}"
            );
        }
        let all = places.len();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), all);
    }
}
