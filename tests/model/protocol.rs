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
    pub(crate) rules: Rules,
    pub(crate) callers: Vec<Policy>,
    pub(crate) calls: u8,
    pub(crate) left: Left,
    pub(crate) passed: Arc<AtomicU32>,
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
        self.passed.fetch_or(std::mem::take(&mut next.passed).0, Ordering::Relaxed);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises![
            OneEffect,
            OneEffectOfHolders,
            RefuseNeverRepeats,
            NoOverlap,
            OneWinner,
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

impl Protocol {
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
    let protocol = Protocol {
        rules: RULES,
        callers: callers.to_vec(),
        calls,
        left,
        passed: Arc::default(),
    };
    let passed = Arc::clone(&protocol.passed);
    let checker = protocol.check();
    println!(
        "{callers:?}, {calls} calls each: {} unique states, {} in all, {} steps deep",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
    );
    for (promise, path) in checker.discoveries() {
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
        ticks: 4,
        resends: 1,
        crashes: 1,
        renewals: 1,
        drops: 1,
        failures: 1,
    };
    keeps_its_promises(
        &[Policy::Refuse, Policy::Refuse],
        1,
        left,
        &[
            Landmark::Replayed,
            Landmark::Resent,
            Landmark::LateTruth,
            Landmark::LandedLate,
            Landmark::GivenBack,
        ],
    );
}
