//! Attempts that die on request, and how often bodies began: for tests.
//!
//! Everything here belongs to one engine, so tests that run side by side do
//! not meet. Without the feature `testing` there is nothing of it.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::attempt::{Attempt, AttemptState, Phase};
use crate::clock::from_micros;
use crate::panic::{CatchPanic, Panic};
use crate::sync::{Arc, AtomicUsize, Mutex, Ordering, lock};

/// Where an attempt dies as if its process had been killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CrashPoint {
    /// The key is reserved, and nothing of the body was polled, nor of a
    /// recovery.
    BeforeBody,
    /// At the body's first `.await` that has to wait: what comes before it has
    /// happened, what comes after it has not. A body that never waits, as with a
    /// fake that answers at once, has done all its work then.
    InBody,
    /// The body, or the recovery in its place, has returned, and nothing of its
    /// answer is recorded.
    AfterBody,
}

/// What a test asked of this engine, and what it may ask about it.
#[derive(Debug, Default)]
pub(crate) struct Rehearsal {
    crashes: Mutex<HashMap<String, VecDeque<CrashPoint>>>,
    runs: Mutex<HashMap<String, Runs>>,
    /// The longest lease that an attempt died with.
    left_behind: Mutex<Duration>,
}

/// How often the body of one operation began.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs(Arc<AtomicUsize>);

impl Runs {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Rehearsal {
    /// Lets the next attempt of an operation die that is not to die already.
    pub(crate) fn crash_at(&self, operation: String, point: CrashPoint) {
        lock(&self.crashes)
            .entry(operation)
            .or_default()
            .push_back(point);
    }

    pub(crate) fn next_crash(&self, operation: &str) -> Option<CrashPoint> {
        lock(&self.crashes).get_mut(operation)?.pop_front()
    }

    /// Returns an operation of which fewer attempts began than were to die.
    pub(crate) fn outstanding(&self) -> Option<String> {
        lock(&self.crashes)
            .iter()
            .find(|(_, points)| !points.is_empty())
            .map(|(operation, _)| operation.clone())
    }

    pub(crate) fn runs_of(&self, operation: &str) -> Runs {
        lock(&self.runs)
            .entry(operation.to_owned())
            .or_default()
            .clone()
    }

    pub(crate) fn runs(&self, operation: &str) -> usize {
        lock(&self.runs)
            .get(operation)
            .map_or(0, |runs| runs.0.load(Ordering::SeqCst))
    }

    pub(crate) fn left_behind(&self) -> Duration {
        *lock(&self.left_behind)
    }
}

/// A death on its way to where the attempt ends, in a panic's place.
struct Crash;

/// Returns what a body ends with that dies.
pub(crate) fn crash() -> Panic {
    Box::new(Crash)
}

pub(crate) fn is_crash(panic: &(dyn Any + Send)) -> bool {
    panic.is::<Crash>()
}

/// Leaves an attempt as a killed process does: its record stays in progress,
/// and nobody renews it, gives it back or marks it.
pub(crate) fn leave_behind(attempt: Attempt) {
    attempt.state.lose();
    let lease = from_micros(attempt.state.prepared.lease_us());
    let mut longest = lock(&attempt.engine.rehearsal.left_behind);
    *longest = std::cmp::max(*longest, lease);
    drop(longest);
    drop(attempt.end());
}

/// A body that may have to die.
pub(crate) struct Mortal<'a, F> {
    pub(crate) body: CatchPanic<'a, F>,
    pub(crate) state: &'a AttemptState,
    pub(crate) crash: Option<CrashPoint>,
}

impl<F: Future> Future for Mortal<'_, F> {
    type Output = Result<F::Output, Panic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.body).poll(cx) {
            Poll::Ready(Ok(_)) if self.crash.is_some() => Poll::Ready(Err(crash())),
            // Not in a recovery's probe: nothing of the body has begun then.
            Poll::Pending
                if self.crash == Some(CrashPoint::InBody)
                    && self.state.phase() == Phase::Running =>
            {
                Poll::Ready(Err(crash()))
            }
            other => other,
        }
    }
}
