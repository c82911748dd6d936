//! An attempt dies as if its process had been killed: nothing of it is told to
//! the store, and who comes later meets `on_unknown`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use idem::record::State;
use idem::testing::{
    CrashPoint, Testbed, assert_executed, assert_how, assert_replayed, crash_here,
};
use idem::{Error, Recovered, UnknownReason, idempotent};

use crate::{Gate, HOUR};

/// Counts how far a body came.
#[derive(Debug, Clone, Default)]
struct Steps(Arc<AtomicU32>);

impl Steps {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    async fn find(&self) -> Result<Recovered<u32>, Error> {
        // A probe may wait: that is not in the body.
        tokio::task::yield_now().await;
        Ok(match self.count() {
            0 => Recovered::NotDone,
            steps => Recovered::Done(steps),
        })
    }
}

/// Two steps, with a wait between them.
#[idempotent(name = "crash.refuse", key = order, ttl = "1h")]
async fn refuse(steps: Steps, order: u32) -> Result<u32, Error> {
    steps.add();
    tokio::task::yield_now().await;
    steps.add();
    Ok(order)
}

#[idempotent(name = "crash.borrow", key = order, ttl = "1h", on_cancel = abandon)]
async fn borrow(steps: &Steps, order: u32) -> Result<u32, Error> {
    steps.add();
    tokio::task::yield_now().await;
    steps.add();
    Ok(order)
}

#[idempotent(name = "crash.rerun", key = order, ttl = "1h", on_unknown = rerun)]
async fn rerun(steps: Steps, order: u32) -> Result<u32, Error> {
    steps.add();
    Ok(order)
}

#[idempotent(name = "crash.recover", key = order, ttl = "1h", on_unknown = recover(steps.find()))]
async fn recover(steps: Steps, order: u32) -> Result<u32, Error> {
    tokio::task::yield_now().await;
    steps.add();
    Ok(order)
}

#[idempotent(name = "crash.leased", key = order, ttl = "1h", lease = "10m", on_unknown = rerun)]
async fn leased(order: u32) -> Result<u32, Error> {
    Ok(order)
}

const POINTS: [(CrashPoint, u32); 3] = [
    (CrashPoint::BeforeBody, 0),
    (CrashPoint::InBody, 1),
    (CrashPoint::AfterBody, 2),
];

fn reason(answer: Result<u32, Error>) -> UnknownReason {
    match answer {
        Err(Error::UnknownOutcome { reason, .. }) => reason,
        answer => panic!("{answer:?}"),
    }
}

/// The state of the only record.
async fn state<F: Future<Output = Result<u32, Error>>>(t: &Testbed, again: F) -> State {
    let (_, outcome) = idem::observe(t.scope(again)).await;
    let record = outcome.unwrap().record.unwrap();
    t.store().record(&record).unwrap().state
}

#[tokio::test(start_paused = true)]
async fn an_attempt_dies_where_it_was_told_and_leaves_its_record_in_progress() {
    for (point, came) in POINTS {
        let (t, steps) = (Testbed::new().await, Steps::default());
        t.crash_at("crash.refuse", point);
        let lost = assert_how!(Refused, t.scope(refuse(steps.clone(), 1)));
        assert_eq!(lost, Err(Error::ShuttingDown));
        assert_eq!(steps.count(), came, "{point:?}");
        assert_eq!(t.engine().stats(), idem::Stats::default(), "{point:?}");

        // Neither released, nor unknown, nor recorded, as long as it is leased.
        let waited = t.scope(refuse(steps.clone(), 1)).await;
        assert!(waited.is_err_and(|error| error.is_in_progress()));
        let here = state(&t, refuse(steps.clone(), 1)).await;
        assert_eq!(here, State::InProgress, "{point:?}");

        // Nobody renews it: it lapses, and the default refuses.
        t.lapse();
        let after = t.scope(refuse(steps.clone(), 1)).await;
        assert_eq!(reason(after), UnknownReason::Lapsed);
        assert_eq!(steps.count(), came, "{point:?}");
        assert_eq!(t.runs("crash.refuse"), usize::from(came > 0), "{point:?}");
    }
}

#[tokio::test]
async fn a_body_in_its_callers_task_dies_too() {
    for (point, came) in POINTS {
        let (t, steps) = (Testbed::new().await, Steps::default());
        t.crash_at("crash.borrow", point);
        let lost = t.scope(borrow(&steps, 1)).await;
        assert_eq!(lost, Err(Error::ShuttingDown));
        t.clock().advance(HOUR);
        let after = t.scope(borrow(&steps, 1)).await;
        assert_eq!(reason(after), UnknownReason::Lapsed);
        assert_eq!(steps.count(), came, "{point:?}");
    }
}

#[tokio::test]
async fn what_lapsed_is_run_again_where_the_function_says_so() {
    let (t, steps) = (Testbed::new().await, Steps::default());
    let other = t.another_process().await;
    t.crash_at("crash.rerun", CrashPoint::AfterBody);
    t.scope(rerun(steps.clone(), 1)).await.unwrap_err();
    t.lapse();
    assert_executed!(other.scope(rerun(steps.clone(), 1))).unwrap();
    assert_replayed!(t.scope(rerun(steps.clone(), 1))).unwrap();
    assert_eq!(steps.count(), 2);
    assert_eq!((t.runs("crash.rerun"), other.runs("crash.rerun")), (1, 1));
}

#[tokio::test]
async fn a_recovery_counts_as_a_run_only_if_the_body_begins() {
    let (t, steps) = (Testbed::new().await, Steps::default());
    let call = || t.scope(recover(steps.clone(), 1));
    // Before its first step twice: in the takeover, the probe may wait.
    t.crash_at("crash.recover", CrashPoint::InBody);
    t.crash_at("crash.recover", CrashPoint::InBody);
    t.crash_at("crash.recover", CrashPoint::AfterBody);
    for runs in [1, 2, 3] {
        call().await.unwrap_err();
        assert_eq!(t.runs("crash.recover"), runs);
        t.lapse();
    }
    assert_eq!(steps.count(), 1);
    // Died again, with what was found: it is found again.
    t.crash_at("crash.recover", CrashPoint::InBody);
    call().await.unwrap_err();
    t.lapse();
    assert_eq!(assert_how!(Recovered, call()), Ok(1));
    assert_eq!((steps.count(), t.runs("crash.recover")), (1, 3));
}

#[tokio::test]
async fn lapse_outlives_a_lease_of_the_functions_own() {
    let t = Testbed::new().await;
    t.crash_at("crash.leased", CrashPoint::BeforeBody);
    t.scope(leased(1)).await.unwrap_err();
    t.lapse();
    assert_executed!(t.scope(leased(1))).unwrap();
}

#[tokio::test]
async fn calls_without_a_run_leave_the_point_for_a_later_attempt() {
    let (t, steps) = (Testbed::new().await, Steps::default());
    t.scope(rerun(steps.clone(), 1)).await.unwrap();
    t.crash_at("crash.rerun", CrashPoint::InBody);
    assert_replayed!(t.scope(rerun(steps.clone(), 1))).unwrap();
    assert_eq!(
        t.scope(rerun(steps.clone(), 2)).await,
        Err(Error::ShuttingDown)
    );
    assert_executed!(t.scope(rerun(steps, 3))).unwrap();
}

#[tokio::test]
async fn who_waits_in_the_same_process_asks_the_store() {
    let t = Testbed::new().await;
    let gate = Gate::closed();
    let call = |gate: Gate| {
        let call = t.engine().call("crash.flight", &1, HOUR);
        let call = call.on_unknown(idem::OnUnknown::Rerun);
        call.run_detailed(async move {
            gate.pass().await;
            Ok::<_, Error>(1)
        })
    };
    t.crash_at("crash.flight", CrashPoint::AfterBody);
    let first = tokio::spawn(call(gate.clone()));
    gate.began.notified().await;
    let second = tokio::spawn(call(gate.clone()));
    while t.engine().stats().waiters == 0 {
        tokio::task::yield_now().await;
    }
    gate.open();
    assert_eq!(first.await.unwrap().0, Err(Error::ShuttingDown));
    assert!(!second.is_finished());
    t.lapse();
    gate.open();
    let (answer, outcome) = second.await.unwrap();
    assert_eq!(answer, Ok(1));
    assert_eq!((outcome.how, outcome.attempt), (idem::How::Executed, 2));
}

#[tokio::test]
async fn a_fake_lets_the_attempt_die_at_an_exact_place() {
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    #[idempotent(name = "crash.here", key = order, ttl = "1h")]
    async fn here(steps: Steps, _dropped: SetOnDrop, order: u32) -> Result<u32, Error> {
        steps.add();
        tokio::task::yield_now().await;
        crash_here()
    }
    let (t, steps) = (Testbed::new().await, Steps::default());
    let dropped = Arc::new(AtomicBool::new(false));
    let lost = t.scope(here(steps.clone(), SetOnDrop(Arc::clone(&dropped)), 1));
    assert_eq!(lost.await, Err(Error::ShuttingDown));
    assert!(dropped.load(Ordering::SeqCst));
    t.lapse();
    let after = t.scope(here(steps.clone(), SetOnDrop(dropped), 1));
    assert_eq!(reason(after.await), UnknownReason::Lapsed);
    assert_eq!(steps.count(), 1);
}

#[tokio::test]
#[should_panic(expected = "there is no attempt to crash here")]
async fn nothing_dies_outside_of_a_body() {
    crash_here();
}

#[tokio::test]
#[should_panic(expected = "`crash.refused` was to crash and has not")]
async fn a_misspelt_operation_fails_the_test() {
    let t = Testbed::new().await;
    t.crash_at("crash.refused", CrashPoint::InBody);
    t.scope(refuse(Steps::default(), 1)).await.unwrap();
}

#[tokio::test]
async fn a_panic_of_the_body_stays_a_panic() {
    let t = Testbed::new().await;
    t.crash_at("crash.panic", CrashPoint::AfterBody);
    let call = || t.engine().call("crash.panic", &1, HOUR);
    let body = async { panic!("an assertion in the body") };
    let panicked = tokio::spawn(call().run::<Result<u32, Error>, _>(body)).await;
    assert!(panicked.is_err_and(|error| error.is_panic()));
    let after = call().run(async { Ok(1) }).await;
    assert_eq!(reason(after), UnknownReason::Panicked);
}
