//! What bodies did and callers got, counted by themselves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use idem::Error;
use serde::{Deserialize, Serialize};

/// What a function of this run may fail with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Fail {
    /// Its own.
    Own(u32),
    /// The engine's.
    Idem(Error),
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

/// How often something happened, by operation.
type Counts = BTreeMap<(String, &'static str), u64>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    counts: Arc<Mutex<Counts>>,
}

/// What one body did, for its caller to look at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ran(Arc<Mutex<bool>>);

impl Ran {
    pub(crate) fn note(&self) {
        *self.0.lock().unwrap() = true;
    }

    fn did(&self) -> bool {
        *self.0.lock().unwrap()
    }
}

impl Ledger {
    pub(crate) fn add(&self, operation: &str, what: &'static str) {
        let mut counts = self.counts.lock().unwrap();
        *counts.entry((operation.to_owned(), what)).or_default() += 1;
    }

    pub(crate) fn count(&self, operation: &str, what: &'static str) -> u64 {
        let counts = self.counts.lock().unwrap();
        let count = counts.get(&(operation.to_owned(), what));
        count.copied().unwrap_or(0)
    }

    /// The sum over operations.
    pub(crate) fn total(&self, what: &'static str) -> u64 {
        let counts = self.counts.lock().unwrap();
        let all = counts.iter().filter(|((_, of), _)| *of == what);
        all.map(|(_, count)| count).sum()
    }

    /// Every operation that was called.
    pub(crate) fn operations(&self) -> Vec<String> {
        let counts = self.counts.lock().unwrap();
        let mut all: Vec<_> = counts.keys().map(|(of, _)| of.clone()).collect();
        all.dedup();
        all
    }

    /// Notes what a caller got.
    pub(crate) fn got<T>(&self, operation: &str, ran: &Ran, answer: &Result<T, Fail>) {
        self.add(operation, "calls");
        let what = match answer {
            // Whatever it returned, also what is not recorded.
            _ if ran.did() => "executed",
            Ok(_) | Err(Fail::Own(_)) => "given",
            Err(Fail::Idem(error)) => match error {
                Error::InProgress { .. } => "in_progress",
                Error::PayloadMismatch { .. } => "mismatch",
                Error::UnknownOutcome { .. } => "unknown",
                Error::Stale { .. } => "stale",
                Error::NotReplayable { .. } => "tombstone",
                Error::InvalidKey { .. } => "invalid_key",
                other => panic!("{operation} has no such error: {other}"),
            },
        };
        self.add(operation, what);
    }
}
