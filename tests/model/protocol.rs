//! The protocol as it is, in every mixture of policies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::caller::Action;
use crate::judge::{Landmark, Promise};
use crate::server::{RULES, Rules};
use crate::world::{Left, Policy, World};

/// Who calls, how often, and what may go wrong how often.
#[derive(Clone)]
pub(crate) struct Protocol {
    rules: Rules,
    callers: Vec<Policy>,
    calls: u8,
    left: Left,
    passed: Arc<AtomicU32>,
}

macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        vec![$(Property::always(stringify!($promise), |_: &Protocol, world: &World| {
            world.seen.broken != Some(Promise::$promise)
        })),*]
    };
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.callers, self.calls, self.left)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.seen.broken.is_none() {
            world.possible(&self.rules, actions);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.take(&self.rules, action);
        if next.row != world.row {
            next.judge_aftermath(&self.rules);
        }
        self.passed
            .fetch_or(std::mem::take(&mut next.passed).0, Ordering::Relaxed);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises![
            OneEffect,
            OneEffectOfHolders,
            RefuseNeverRepeats,
            NoOverlap,
            OneWinner,
            WinsOnce,
            NotLockedOut,
            FailClosed,
            FencesGrow,
            HoldersWrite,
            TruthIsTaken,
            OneAnswer,
            SameAnswer,
            DoubtStays,
            TakeoversBounded,
            ProbesBackOff,
            SweepOnlyOver,
            NeverStuck,
        ]
    }
}

/// Nothing goes wrong, and no time passes.
pub(crate) const NOTHING: Left = Left {
    ticks: 0,
    resends: 0,
    late: 0,
    crashes: 0,
    renewals: 0,
    drops: 0,
    failures: 0,
};

impl Protocol {
    pub(crate) fn new(rules: Rules, callers: &[Policy], calls: u8, left: Left) -> Self {
        Self {
            rules,
            callers: callers.to_vec(),
            calls,
            left,
            passed: Arc::default(),
        }
    }

    /// Explores everything, or up to the first broken promise.
    pub(crate) fn check(self) -> impl Checker<Self> {
        self.checker()
            .threads(2)
            .finish_when(HasDiscoveries::AnyFailures)
            .timeout(Duration::from_secs(80))
            .spawn_bfs()
            .join()
    }
}

/// Explores everything and fails if a promise is broken, or if a landmark was
/// not come by.
fn keeps_its_promises(callers: &[Policy], calls: u8, left: Left, landmarks: &[Landmark]) {
    let protocol = Protocol::new(RULES, callers, calls, left);
    let passed = Arc::clone(&protocol.passed);
    let checker = protocol.check();
    println!(
        "{callers:?}, {calls} calls each: {} unique states, {} in all, {} steps deep",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
    );
    if let Some((promise, path)) = checker.discoveries().into_iter().next() {
        let steps: Vec<_> = path.clone().into_actions();
        let last = path.last_state();
        panic!("{promise} is broken by {steps:#?}, which ends in {last:#?}");
    }
    assert!(checker.is_done(), "it did not come to an end");
    for landmark in landmarks {
        let bit = passed.load(Ordering::Relaxed) & landmark.bit();
        assert!(bit != 0, "it never came by {landmark:?}");
    }
}

#[test]
fn callers_that_refuse() {
    let left = Left {
        ticks: 3,
        resends: 1,
        late: 1,
        crashes: 1,
        drops: 1,
        failures: 1,
        ..NOTHING
    };
    let landmarks = [
        Landmark::Replayed,
        Landmark::Resent,
        Landmark::LateTruth,
        Landmark::LandedLate,
        Landmark::GivenBack,
    ];
    keeps_its_promises(&[Policy::Refuse; 2], 1, left, &landmarks);
}

#[test]
fn callers_that_refuse_and_come_again() {
    let left = Left {
        ticks: 3,
        crashes: 1,
        failures: 1,
        ..NOTHING
    };
    let landmarks = [Landmark::Replayed, Landmark::Expired, Landmark::Swept];
    keeps_its_promises(&[Policy::Refuse; 2], 2, left, &landmarks);
}

#[test]
fn a_caller_that_refuses_beside_one_that_reruns() {
    let left = Left {
        ticks: 4,
        resends: 1,
        late: 1,
        crashes: 1,
        ..NOTHING
    };
    let landmarks = [Landmark::TakenOver, Landmark::Resent, Landmark::LateTruth];
    keeps_its_promises(&[Policy::Refuse, Policy::Rerun], 1, left, &landmarks);
}

#[test]
fn callers_that_rerun() {
    let left = Left {
        ticks: 4,
        late: 1,
        crashes: 1,
        renewals: 1,
        failures: 1,
        ..NOTHING
    };
    let landmarks = [Landmark::TakenOver, Landmark::Superseded];
    keeps_its_promises(&[Policy::Rerun; 2], 1, left, &landmarks);
}

#[test]
fn three_callers_that_rerun() {
    let left = Left {
        ticks: 4,
        crashes: 1,
        ..NOTHING
    };
    let landmarks = [
        Landmark::TakenOver,
        Landmark::Superseded,
        Landmark::Replayed,
    ];
    keeps_its_promises(&[Policy::Rerun; 3], 1, left, &landmarks);
}

#[test]
fn callers_that_recover() {
    let left = Left {
        ticks: 4,
        late: 1,
        crashes: 1,
        failures: 1,
        ..NOTHING
    };
    let landmarks = [
        Landmark::TakenOver,
        Landmark::Recovered,
        Landmark::Undecided,
        Landmark::Superseded,
    ];
    keeps_its_promises(&[Policy::Recover; 2], 1, left, &landmarks);
}

#[test]
fn a_caller_that_refuses_beside_one_that_recovers() {
    let left = Left {
        ticks: 3,
        resends: 1,
        late: 1,
        crashes: 1,
        failures: 1,
        ..NOTHING
    };
    let landmarks = [Landmark::Recovered, Landmark::LandedLate];
    keeps_its_promises(&[Policy::Refuse, Policy::Recover], 1, left, &landmarks);
}

#[test]
fn callers_of_every_policy() {
    let left = Left {
        ticks: 2,
        crashes: 1,
        failures: 1,
        ..NOTHING
    };
    let callers = [Policy::Refuse, Policy::Rerun, Policy::Recover];
    keeps_its_promises(&callers, 1, left, &[Landmark::TakenOver]);
}
