//! An attempt ended without an answer: rerun, recover, and the limits of both.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem::store::MemoryStore;
use idem::testing::ManualClock;
use idem::{
    Disposition, Engine, Error, How, OnUnknown, Recovered, UnknownReason, idempotent, observe,
};
use tokio::sync::{Notify, oneshot};

use crate::faulty::{Fault, Faulty};
use crate::{Runs, idle, until};

/// The outside world: what a probe finds, and how often it was asked.
#[derive(Debug, Clone, Default)]
struct World {
    found: Arc<Mutex<Option<Recovered<String>>>>,
    probes: Runs,
    bodies: Runs,
    gate: Arc<Mutex<Option<oneshot::Receiver<()>>>>,
}

impl World {
    fn says(&self, found: Option<Recovered<String>>) {
        *self.found.lock().unwrap() = found;
    }

    async fn probe(&self) -> Result<Recovered<String>, Error> {
        self.probes.add();
        let gate = self.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            gate.await.ok();
        }
        assert!(idem::context()?.is_reattempt());
        let found = self.found.lock().unwrap().clone();
        found.ok_or(Error::Failed {
            message: "cannot ask".to_owned(),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Body {
    Succeeds,
    EndsUnknown,
    Releases,
}

fn by_text(error: &Error) -> Disposition {
    match error {
        Error::Failed { message } if message == "nothing happened" => Disposition::Release,
        _ => Disposition::Unknown,
    }
}

fn body(world: &World, order: u32, kind: Body) -> Result<String, Error> {
    world.bodies.add();
    let message = match kind {
        Body::Succeeds => return Ok(format!("ran {order}")),
        Body::EndsUnknown => "who knows",
        Body::Releases => "nothing happened",
    };
    Err(Error::Failed {
        message: message.to_owned(),
    })
}

#[idempotent(
    key = order, name = "recovery.recover", ttl = "1h", engine = engine,
    on_error = classify(by_text), on_unknown = recover(world.probe())
)]
async fn recover(engine: Engine, world: World, order: u32, kind: Body) -> Result<String, Error> {
    body(&world, order, kind)
}

#[idempotent(
    key = order, name = "recovery.recover", ttl = "1h", engine = engine, on_cancel = abandon,
    on_error = classify(by_text), on_unknown = recover(world.probe())
)]
async fn recover_here(engine: Engine, world: &World, order: u32) -> Result<String, Error> {
    body(world, order, Body::Succeeds)
}

#[idempotent(
    key = order, name = "recovery.rerun", ttl = "1h", engine = engine,
    on_error = classify(by_text), on_unknown = rerun
)]
async fn rerun(engine: Engine, world: World, order: u32, kind: Body) -> Result<String, Error> {
    body(&world, order, kind)
}

async fn setup() -> (Engine, ManualClock, MemoryStore) {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let lease = Duration::from_secs(30);
    let engine = Engine::builder(store.clone()).lease(lease).build();
    (engine.await.unwrap(), clock, store)
}

fn unknown(answer: &Result<String, Error>) -> Option<UnknownReason> {
    match answer {
        Err(Error::UnknownOutcome { reason, .. }) => Some(*reason),
        _ => None,
    }
}

#[tokio::test]
async fn what_the_probe_finds_is_recorded_and_replayed_and_the_body_never_runs_again() {
    let ((engine, _, _), world) = (setup().await, World::default());
    recover(engine.clone(), world.clone(), 1, Body::EndsUnknown)
        .await
        .unwrap_err();
    world.says(Some(Recovered::Done("found".to_owned())));
    for how in [How::Recovered, How::Replayed] {
        let call = recover(engine.clone(), world.clone(), 1, Body::Succeeds);
        let (answer, outcome) = observe(call).await;
        assert_eq!(answer.as_deref(), Ok("found"));
        assert_eq!(outcome.unwrap().how, how);
    }
    assert_eq!((world.bodies.count(), world.probes.count()), (1, 1));
}

#[tokio::test]
async fn if_nothing_happened_the_body_runs_in_the_same_attempt() {
    let ((engine, _, _), world) = (setup().await, World::default());
    recover(engine.clone(), world.clone(), 1, Body::EndsUnknown)
        .await
        .unwrap_err();
    world.says(Some(Recovered::NotDone));
    let call = recover(engine.clone(), world.clone(), 1, Body::Succeeds);
    let (answer, outcome) = observe(call).await;
    assert_eq!(answer.as_deref(), Ok("ran 1"));
    let outcome = outcome.unwrap();
    assert_eq!((outcome.how, outcome.attempt), (How::Executed, 2));
    assert_eq!((world.bodies.count(), world.probes.count()), (2, 1));
}

#[tokio::test]
async fn undecided_probes_leave_it_unknown_wait_longer_each_time_and_do_not_count() {
    let ((engine, clock, _), world) = (setup().await, World::default());
    let call = || recover(engine.clone(), world.clone(), 1, Body::EndsUnknown);
    call().await.unwrap_err();
    let mut pauses = Vec::new();
    for probe in 1..=12 {
        // Alternately undecided and failing; the failure is the caller's own.
        world.says((probe % 2 == 0).then_some(Recovered::Unknown));
        let answer = call().await;
        if probe % 2 == 0 {
            assert_eq!(unknown(&answer), Some(UnknownReason::Undecided));
        } else {
            assert!(matches!(answer, Err(Error::Failed { .. })), "{answer:?}");
        }
        assert_eq!(world.probes.count(), probe);
        // Too early to ask again: nobody is asked.
        let early = call().await.unwrap_err();
        assert!(early.is_unknown_outcome() && early.is_retryable());
        let pause = early.retry_after().unwrap();
        pauses.push(pause);
        assert_eq!(world.probes.count(), probe);
        clock.advance(pause + Duration::from_millis(1));
    }
    assert_eq!(pauses[0], Duration::from_secs(10), "a third of the lease");
    assert!(pauses.is_sorted());
    assert_eq!(pauses[11], Duration::from_secs(300), "at most five minutes");
    // More probes than takeovers are allowed: they did not count.
    world.says(Some(Recovered::Done("found".to_owned())));
    assert_eq!(call().await.as_deref(), Ok("found"));
    assert_eq!(world.bodies.count(), 1);
}

#[tokio::test]
async fn takeovers_that_run_the_body_end_at_the_limit() {
    let ((engine, _, _), world) = (setup().await, World::default());
    let call = || rerun(engine.clone(), world.clone(), 1, Body::EndsUnknown);
    for run in 1..=6 {
        let answer = call().await;
        assert!(matches!(answer, Err(Error::Failed { .. })), "{answer:?}");
        assert_eq!(world.bodies.count(), run);
    }
    for _ in 0..2 {
        let answer = call().await;
        assert!(
            matches!(
                answer,
                Err(Error::UnknownOutcome {
                    exhausted: true,
                    ..
                })
            ),
            "{answer:?}"
        );
    }
    assert_eq!(world.bodies.count(), 6);
}

#[tokio::test]
async fn release_in_doubt_makes_it_unknown_unless_the_probe_cleared_it() {
    let ((engine, _, _), world) = (setup().await, World::default());
    // Under rerun nobody knows what the first attempt did.
    rerun(engine.clone(), world.clone(), 1, Body::EndsUnknown)
        .await
        .unwrap_err();
    rerun(engine.clone(), world.clone(), 1, Body::Releases)
        .await
        .unwrap_err();
    let record = |name: &'static str| {
        let engine = engine.clone();
        async move {
            let call = engine.call(name, &1_u32, crate::DAY);
            call.run_detailed(async { Ok::<_, Error>("released".to_owned()) })
                .await
                .0
        }
    };
    assert_eq!(
        unknown(&record("recovery.rerun").await),
        Some(UnknownReason::Failed)
    );

    recover(engine.clone(), world.clone(), 1, Body::EndsUnknown)
        .await
        .unwrap_err();
    world.says(Some(Recovered::NotDone));
    recover(engine.clone(), world.clone(), 1, Body::Releases)
        .await
        .unwrap_err();
    let next = record("recovery.recover").await;
    assert_eq!(next.as_deref(), Ok("released"));
}

#[tokio::test]
async fn a_caller_that_takes_over_and_leaves_before_its_probe_was_polled_leaves_it_unknown() {
    let ((engine, _, store), world) = (setup().await, World::default());
    let first = recover(engine.clone(), world.clone(), 1, Body::EndsUnknown);
    let (_, outcome) = observe(first).await;
    let record = outcome.unwrap().record.unwrap();
    let before = store.record(&record).unwrap();

    // Reserved in its own task and never polled again: dropped before the probe.
    let reply = Arc::new(Notify::new());
    let held = Faulty::behind(store.clone()).on_reserve([Fault::HoldReply(Arc::clone(&reply))]);
    let engine = crate::engine(held).await;
    let mut call = Box::pin(recover_here(engine.clone(), &world, 1));
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    assert!(call.as_mut().poll(&mut context).is_pending());
    reply.notify_one();
    until(|| engine.stats().attempts != 0).await;
    drop(call);
    until(|| store.record(&record).unwrap().state == idem::record::State::Unknown).await;
    idle(&engine).await;
    let after = store.record(&record).unwrap();
    assert_eq!((world.probes.count(), world.bodies.count()), (0, 1));
    assert_eq!(after.takeovers, before.takeovers, "it does not count");
    assert_eq!(after.attempt, before.attempt);
    assert_eq!(after.since_us, before.since_us);
    assert!(after.fence > before.fence);
}

#[tokio::test]
async fn a_caller_that_leaves_during_its_probe_leaves_it_undecided() {
    let ((engine, clock, store), world) = (setup().await, World::default());
    let first = recover(engine.clone(), world.clone(), 1, Body::EndsUnknown);
    let record = observe(first).await.1.unwrap().record.unwrap();
    let engine = crate::engine(store.clone()).await;
    let (_open, gate) = oneshot::channel();
    *world.gate.lock().unwrap() = Some(gate);
    let call = tokio::spawn({
        let (engine, world) = (engine.clone(), world.clone());
        async move { recover_here(engine, &world, 1).await }
    });
    until(|| world.probes.count() != 0).await;
    call.abort();
    call.await.unwrap_err();
    until(|| store.record(&record).unwrap().state == idem::record::State::Unknown).await;
    assert_eq!(store.record(&record).unwrap().takeovers, 0);
    clock.advance(Duration::from_secs(60));
    world.says(Some(Recovered::Done("found".to_owned())));
    let answer = recover_here(engine, &world, 1).await;
    assert_eq!(answer.as_deref(), Ok("found"));
    assert_eq!(world.bodies.count(), 1);
}

#[tokio::test]
async fn a_plain_call_recovers_too() {
    let (engine, _, _) = setup().await;
    let call = |found: Recovered<u32>, body: Result<u32, Error>| {
        engine
            .call("recovery.plain", &1, crate::DAY)
            .on_error(idem::on_error::Unknown)
            .run_or_recover(async move { Ok(found) }, async move { body })
    };
    call(Recovered::Unknown, Err(Error::NoContext))
        .await
        .unwrap_err();
    assert_eq!(call(Recovered::Done(7), Ok(8)).await, Ok(7));
    assert_eq!(call(Recovered::NotDone, Ok(8)).await, Ok(7));
}

#[tokio::test]
async fn recover_with_nobody_to_ask_is_misuse_and_runs_nothing() {
    let ((engine, _, store), world) = (setup().await, World::default());
    for _ in 0..2 {
        let world = world.clone();
        let call = engine
            .call("recovery.nobody", &1, crate::DAY)
            .on_unknown(OnUnknown::Recover);
        let answer = call.run(async move { body(&world, 1, Body::Succeeds) });
        let answer = answer.await;
        assert!(matches!(answer, Err(Error::Misuse { .. })), "{answer:?}");
    }
    assert_eq!(world.bodies.count(), 0);
    assert!(store.is_empty());
}

#[tokio::test]
async fn a_probe_that_panics_is_undecided_and_does_not_count() {
    let ((engine, clock, store), world) = (setup().await, World::default());
    let first = recover(engine.clone(), world.clone(), 1, Body::EndsUnknown);
    let record = observe(first).await.1.unwrap().record.unwrap();
    let call = |panics: bool| {
        let probe = async move {
            assert!(!panics, "the probe");
            Ok(Recovered::Done("found".to_owned()))
        };
        engine
            .call("recovery.recover", &1_u32, crate::DAY)
            .run_or_recover(probe, async { panic!("a second run") })
    };
    // More often than takeovers are allowed.
    for _ in 0..7 {
        let panicked: Result<Result<String, Error>, _> = tokio::spawn(call(true)).await;
        assert!(panicked.unwrap_err().is_panic());
        let now = store.record(&record).unwrap();
        assert_eq!(now.reason, Some(UnknownReason::Undecided.code()));
        assert_eq!(now.takeovers, 0);
        clock.advance(Duration::from_secs(301));
    }
    assert_eq!(call(false).await.as_deref(), Ok("found"));
    assert_eq!(world.bodies.count(), 1);
}

#[idempotent(
    key = order, name = "recovery.unprotected", ttl = "1h", engine = engine,
    on_missing_key = run, on_unknown = recover(world.probe())
)]
async fn unprotected(engine: Engine, world: World, order: Option<u32>) -> Result<String, Error> {
    world.bodies.add();
    Ok("ran".to_owned())
}

#[idempotent(
    key = order, name = "recovery.unprotected", ttl = "1h", engine = engine, on_cancel = abandon,
    on_missing_key = run, on_unknown = recover(world.probe())
)]
async fn unprotected_here(
    engine: Engine,
    world: &World,
    order: Option<u32>,
) -> Result<String, Error> {
    world.bodies.add();
    Ok("ran".to_owned())
}

#[tokio::test]
async fn a_call_without_a_key_inside_a_doubtful_attempt_asks_no_probe() {
    let ((engine, _, _), world) = (setup().await, World::default());
    let parent = |fails: bool| {
        let (inside, world) = (engine.clone(), world.clone());
        engine
            .call("recovery.parent", &1, crate::DAY)
            .on_error(idem::on_error::Unknown)
            .run_or_recover(async { Ok(Recovered::NotDone) }, async move {
                if fails {
                    return Err(Error::NoContext);
                }
                let ran = unprotected(inside.clone(), world.clone(), None).await?;
                Ok(ran + &unprotected_here(inside, &world, None).await?)
            })
    };
    parent(true).await.unwrap_err();
    let (answer, outcome) = observe(parent(false)).await;
    assert_eq!(answer.as_deref(), Ok("ranran"));
    let outcome = outcome.unwrap();
    assert_eq!((outcome.how, outcome.attempt), (How::Executed, 2));
    assert_eq!((world.bodies.count(), world.probes.count()), (2, 0));
}
