//! Recovery points: what a step gives is not done again by who takes over.

use std::sync::{Arc, Mutex};

use idem::store::{MemoryStore, Step};
use idem::{
    Engine, Error, OnUnknown, RecordId, StepReason, StoreErrorKind, TombstoneReason, UnknownReason,
    idempotent, step,
};
use serde::{Deserialize, Serialize};

use crate::faulty::{Change, Fault, Faulty};
use crate::{DAY, Runs, engine, memory};

/// What a body does, and what came of it before the body dies.
#[derive(Debug, Clone, Default)]
struct Work {
    ran: Arc<Mutex<Vec<&'static str>>>,
}

impl Work {
    fn run(&self, label: &'static str) -> Result<String, Error> {
        self.ran.lock().unwrap().push(label);
        Ok(format!("{label} {}", self.ran().len()))
    }

    fn ran(&self) -> Vec<&'static str> {
        self.ran.lock().unwrap().clone()
    }

    async fn step(&self, label: &'static str) -> Result<String, Error> {
        step(label, async { self.run(label) }).await
    }
}

/// Makes the call; a body that returns `Err` leaves its outcome unknown.
async fn call<T, F>(engine: &Engine, body: F) -> Result<T, Error>
where
    T: Serialize + for<'de> Deserialize<'de> + Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let call = engine.call("steps", &1, DAY).on_unknown(OnUnknown::Rerun);
    call.on_error(idem::on_error::Unknown).run(body).await
}

fn dies<T>() -> Result<T, Error> {
    Err(Error::Failed {
        message: "it dies".to_owned(),
    })
}

/// Runs the steps of these labels, one by one, and then ends as told.
async fn attempt(
    engine: &Engine,
    work: &Work,
    labels: &'static [&'static str],
    dies_then: bool,
) -> Result<Vec<String>, Error> {
    let work = work.clone();
    call(engine, async move {
        let mut results = Vec::new();
        for label in labels {
            results.push(work.step(label).await?);
        }
        if dies_then { dies() } else { Ok(results) }
    })
    .await
}

fn refused<T>(answer: Result<T, Error>) -> StepReason {
    match answer.err() {
        Some(Error::Step { reason, .. }) => reason,
        other => panic!("expected a step to be refused, got {other:?}"),
    }
}

#[tokio::test]
async fn what_has_finished_is_replayed_to_who_takes_over() {
    let (store, work) = (Faulty::default(), Work::default());
    let engine = engine(store.clone()).await;
    assert_eq!(attempt(&engine, &work, &["a", "b"], true).await, dies());
    assert_eq!(store.step_reads(), 0, "a first attempt asks nothing");
    assert_eq!(
        attempt(&engine, &work, &["a", "b", "c"], true).await,
        dies()
    );
    assert_eq!(store.step_reads(), 1, "once for all steps");
    let answer = attempt(&engine, &work, &["a", "b", "c", "d"], false).await;
    let results = ["a 1", "b 2", "c 3", "d 4"].map(str::to_owned).to_vec();
    assert_eq!(answer, Ok(results));
    assert_eq!(work.ran(), ["a", "b", "c", "d"]);
    assert_eq!(store.step_writes(), 4);
}

#[tokio::test]
async fn a_body_without_steps_costs_nothing_more() {
    let (store, work) = (Faulty::default(), Work::default());
    let engine = engine(store.clone()).await;
    assert_eq!(attempt(&engine, &work, &[], true).await, dies());
    assert_eq!(attempt(&engine, &work, &[], false).await, Ok(vec![]));
    assert_eq!((store.step_reads(), store.step_writes()), (0, 0));
}

#[tokio::test]
async fn the_first_attempt_gets_the_copy_that_is_kept() {
    #[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
    struct Charge {
        id: u32,
        #[serde(skip)]
        session: u32,
    }
    let engine = memory().await;
    let session = call(&engine, async {
        let charge = async { Ok::<_, Error>(Charge { id: 7, session: 9 }) };
        let charge = step("charge", charge).await?;
        assert_eq!(charge.id, 7);
        Ok(charge.session)
    });
    assert_eq!(session.await, Ok(0));
}

#[tokio::test]
async fn an_error_of_a_step_goes_through_and_is_not_kept() {
    let (store, work) = (Faulty::default(), Work::default());
    let engine = engine(store.clone()).await;
    let failing = work.clone();
    let answer = call(&engine, async move {
        failing.step("a").await?;
        let failed: Result<Vec<String>, Error> = step("b", async {
            failing.run("b")?;
            dies()
        })
        .await;
        failed
    });
    assert_eq!(answer.await, dies());
    assert_eq!(store.step_writes(), 1);
    assert!(attempt(&engine, &work, &["a", "b"], false).await.is_ok());
    assert_eq!(work.ran(), ["a", "b", "b"]);
}

#[tokio::test]
async fn a_step_that_was_cut_off_runs_again_with_the_same_downstream_key() {
    let engine = memory().await;
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    for dies_then in [true, false] {
        let sent = Arc::clone(&sent);
        let answer = call(&engine, async move {
            step("capture", async {
                let key = idem::context()?.downstream_key("capture");
                sent.lock().unwrap().push(key);
                if dies_then { dies() } else { Ok(()) }
            })
            .await
        });
        assert_eq!(answer.await.is_err(), dies_then);
    }
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
}

#[tokio::test]
async fn a_label_is_used_once_an_attempt_and_has_its_limits() {
    let work = Work::default();
    let engine = memory().await;
    let repeated = attempt(&engine, &work, &["a", "b", "a"], false).await;
    assert_eq!(refused(repeated), StepReason::Repeated);
    assert_eq!(work.ran(), ["a", "b"]);
    let long: &str = "x".repeat(129).leak();
    for label in ["", "a\nb", "a\0", long] {
        let work = work.clone();
        let answer = call(&engine, async move { Ok(vec![work.step(label).await?]) }).await;
        assert_eq!(refused(answer), StepReason::Label, "{label:?}");
    }
    assert_eq!(work.ran(), ["a", "b"]);
    let longest: &str = "x".repeat(128).leak();
    let other = engine.call("steps.longest", &1, DAY);
    let longest = other.run(async move { step(longest, async { Ok::<_, Error>(1) }).await });
    assert_eq!(longest.await, Ok(1));
}

#[tokio::test]
async fn a_renamed_or_moved_step_does_not_run() {
    for (labels, ran) in [
        (&["a", "renamed"][..], 2),
        (&["renamed"], 2),
        (&["c", "a", "b"], 2),
        (&["b", "c"], 2),
    ] {
        let work = Work::default();
        let engine = memory().await;
        assert_eq!(attempt(&engine, &work, &["a", "b"], true).await, dies());
        let changed = attempt(&engine, &work, labels, false).await;
        assert_eq!(refused(changed), StepReason::Changed, "{labels:?}");
        assert_eq!(work.ran().len(), ran, "{labels:?}");
        let before = attempt(&engine, &work, &["a", "b", "c"], false).await;
        assert!(before.is_ok(), "{before:?}");
    }
    // What has finished is found by its label, wherever it is asked for.
    let work = Work::default();
    let engine = memory().await;
    assert_eq!(attempt(&engine, &work, &["a", "b"], true).await, dies());
    assert!(
        attempt(&engine, &work, &["b", "a", "c"], false)
            .await
            .is_ok()
    );
    assert_eq!(work.ran(), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_step_after_one_that_failed_leaves_it_free_to_run() {
    let work = Work::default();
    let engine = memory().await;
    let first = work.clone();
    let answer: Result<Vec<String>, Error> = call(&engine, async move {
        let card: Result<(), Error> = step("card", async { dies() }).await;
        assert!(card.is_err());
        first.step("invoice").await?;
        dies()
    })
    .await;
    assert_eq!(answer, dies());
    assert!(attempt(&engine, &work, &["card"], false).await.is_ok());
    assert_eq!(work.ran(), ["invoice", "card"]);
}

#[tokio::test]
async fn steps_may_run_at_the_same_time() {
    let work = Work::default();
    let engine = memory().await;
    for dies_then in [true, false] {
        let work = work.clone();
        let answer = call(&engine, async move {
            let slow = async {
                if dies_then {
                    tokio::task::yield_now().await;
                    return dies();
                }
                work.run("slow")
            };
            let (slow, fast) = tokio::join!(step("slow", slow), work.step("fast"));
            fast?;
            slow
        });
        assert_eq!(answer.await.is_err(), dies_then);
    }
    assert_eq!(work.ran(), ["fast", "slow"]);
    // One that began beside another has no place of its own.
    let work = Work::default();
    let engine = memory().await;
    let both = work.clone();
    let answer: Result<Vec<String>, Error> = call(&engine, async move {
        let branch = async {
            tokio::task::yield_now().await;
            both.step("c").await
        };
        let slow = async {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            dies::<()>()
        };
        let (slow, c) = tokio::join!(step("slow", slow), branch);
        assert!(slow.is_err() && c.is_ok());
        dies()
    })
    .await;
    assert_eq!(answer, dies());
    assert!(attempt(&engine, &work, &["x", "y"], false).await.is_ok());
}

#[tokio::test]
async fn a_step_does_not_begin_inside_of_another() {
    let engine = memory().await;
    let inner = engine.clone();
    let answer: Result<(), Error> = call(&engine, async move {
        step("outer", async {
            // A call inside has steps of its own.
            let own = inner.call("steps.inner", &1, DAY);
            own.run(async { step("of its own", async { Ok::<_, Error>(1) }).await })
                .await?;
            step("inner", async { panic!("it must not run") }).await
        })
        .await
    })
    .await;
    assert_eq!(refused(answer), StepReason::Nested);
}

#[idempotent(
    key = order, name = "steps.unprotected", ttl = "1h", engine = engine, on_missing_key = run
)]
async fn unprotected(engine: Engine, order: Option<u32>) -> Result<u32, Error> {
    step("a", async { Ok(1) }).await
}

#[tokio::test]
async fn there_are_none_outside_of_a_body() {
    let outside: Result<u32, Error> = step("a", async { panic!("it must not run") }).await;
    assert_eq!(outside, Err(Error::NoContext));
    let engine = memory().await;
    let without = unprotected(engine.clone(), None).await;
    assert_eq!(without, Err(Error::NoContext));
    assert_eq!(unprotected(engine, Some(1)).await, Ok(1));
}

#[tokio::test]
async fn what_cannot_be_kept_is_an_error_and_leaves_the_outcome_unknown() {
    let small = Engine::builder(MemoryStore::new()).answer_limit(1_024);
    let engine = small.build().await.unwrap();
    let answer: Result<String, Error> = engine
        .call("steps.large", &1, DAY)
        .run(async { step("large", async { Ok("x".repeat(2_000)) }).await })
        .await;
    let reason = StepReason::NotKept(TombstoneReason::TooLarge);
    assert_eq!(refused(answer), reason);
    // Our own error is not the recorded answer.
    let again: Result<String, Error> = engine
        .call("steps.large", &1, DAY)
        .run(async { Ok(String::new()) })
        .await;
    let Err(Error::UnknownOutcome { reason, .. }) = again else {
        panic!("expected an unknown outcome, got {again:?}");
    };
    assert_eq!(reason, UnknownReason::Nested);
    let nan: Result<f64, Error> = call(&engine, async {
        step("nan", async { Ok::<_, Error>(f64::NAN) }).await
    })
    .await;
    let reason = StepReason::NotKept(TombstoneReason::NotDecodable);
    assert_eq!(refused(nan), reason);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_asked_for_again() {
    let (store, work) = (Faulty::default(), Work::default());
    let store = store.on_step([Fault::LoseReply, Fault::Refuse]);
    let engine = engine(store.clone()).await;
    let answer = attempt(&engine, &work, &["a"], true).await;
    assert_eq!(answer, dies());
    assert_eq!(store.step_writes(), 3);
    assert!(attempt(&engine, &work, &["a"], false).await.is_ok());
    assert_eq!(work.ran(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_not_confirmed_is_an_error() {
    for fault in [Fault::Break, Fault::Forbid, Fault::Hang] {
        let (store, work) = (Faulty::default(), Work::default());
        let faults = std::iter::repeat_n(fault.clone(), 5);
        let engine = engine(store.clone().on_step(faults)).await;
        let steps = work.clone();
        let answer: Result<String, Error> = engine
            .call("steps.broken", &1, DAY)
            .run(async move { steps.step("a").await })
            .await;
        let Err(Error::Store(error)) = &answer else {
            panic!("expected an error of the store, got {answer:?}");
        };
        let kind = match fault {
            Fault::Break => StoreErrorKind::Permanent,
            Fault::Forbid => StoreErrorKind::Misconfigured,
            _ => StoreErrorKind::Transient,
        };
        assert_eq!(error.kind(), kind);
        // The body returned it, and it is nobody's answer.
        store.heal();
        let steps = work.clone();
        let again: Result<String, Error> = engine
            .call("steps.broken", &1, DAY)
            .run(async move { steps.step("a").await })
            .await;
        assert!(again.is_err_and(|error| error.is_unknown_outcome()));
        assert_eq!(work.ran(), ["a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_read_what_was_finished_runs_nothing() {
    let (store, work) = (Faulty::default(), Work::default());
    let engine = engine(store.clone()).await;
    assert_eq!(attempt(&engine, &work, &["a", "b"], true).await, dies());
    let broken = store.on_step_read([Fault::Break]);
    let answer = attempt(&engine, &work, &["a", "b", "c"], false).await;
    assert!(matches!(answer, Err(Error::Store(_))), "{answer:?}");
    assert_eq!(work.ran(), ["a", "b"]);
    let broken = broken.on_step_read([Fault::LoseReply]);
    assert!(
        attempt(&engine, &work, &["a", "b", "c"], false)
            .await
            .is_ok()
    );
    assert_eq!(work.ran(), ["a", "b", "c"]);
    drop(broken);
}

#[tokio::test]
async fn what_was_damaged_or_is_of_other_work_is_not_taken_for_its_own() {
    let changes: [(Change, Result<(), StepReason>); 6] = [
        (|_, _| (), Ok(())),
        (
            |_, step| step.bytes = b"\"forged\"".to_vec(),
            Err(StepReason::NotReadable(TombstoneReason::Damaged)),
        ),
        (
            |_, step| step.position = None,
            Err(StepReason::NotReadable(TombstoneReason::Damaged)),
        ),
        (
            |id, step| *step = remade(id, step, "other/1", b"\"a 1\""),
            Err(StepReason::NotReadable(TombstoneReason::OtherCodec)),
        ),
        (
            |id, step| *step = remade(id, step, "json/1", b"7"),
            Err(StepReason::NotReadable(TombstoneReason::NotDecodable)),
        ),
        // Of another payload or version: as if it were not there.
        (|_, step| step.basis = [0; 32], Ok(())),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let (store, work) = (Faulty::default(), Work::default());
        let engine = engine(store.clone()).await;
        assert_eq!(attempt(&engine, &work, &["a"], true).await, dies());
        store.alter_steps(change);
        let answer = attempt(&engine, &work, &["a"], false).await;
        match expected {
            Ok(()) => assert!(answer.is_ok(), "{number}: {answer:?}"),
            Err(reason) => assert_eq!(refused(answer), reason, "{number}"),
        }
        let ran = if number == 5 { 2 } else { 1 };
        assert_eq!(work.ran().len(), ran, "{number}");
    }
}

fn remade(id: &RecordId, step: &Step, codec: &str, bytes: &[u8]) -> Step {
    Step::new(
        id,
        &step.label,
        step.position,
        step.basis,
        codec,
        bytes.to_vec(),
    )
}

#[tokio::test]
async fn a_new_life_of_the_key_does_everything() {
    let (runs, engine) = (Runs::default(), memory().await);
    let life = async |on_first: bool| {
        let (runs, call) = (runs.clone(), engine.call("steps.life", &1, DAY));
        let call = call.on_unknown(OnUnknown::Rerun);
        let answer: Result<(), Error> = call
            .on_error(idem::on_error::Release)
            .run(async move {
                step("a", async { Ok::<_, Error>(runs.add()) }).await?;
                if on_first { dies() } else { Ok(()) }
            })
            .await;
        answer
    };
    assert_eq!(life(true).await, dies());
    assert_eq!(runs.count(), 1);
    // Released: nothing had happened, so nothing is left of it.
    assert_eq!(life(false).await, Ok(()));
    assert_eq!(runs.count(), 2);
}

#[tokio::test]
async fn a_store_without_steps_says_so_before_they_run() {
    let work = Work::default();
    let engine = engine(Faulty::default().stepless()).await;
    let answer = attempt(&engine, &work, &["a"], false).await;
    assert_eq!(refused(answer), StepReason::NotSupported);
    assert_eq!(work.ran(), [""; 0]);
}

#[tokio::test]
async fn an_attempt_that_was_superseded_begins_no_step() {
    use idem::testing::ManualClock;

    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let builder = Engine::builder(store.clone()).clock(clock.clone());
    let builder = builder.max_run(std::time::Duration::from_secs(60));
    let engine = builder.build().await.unwrap();
    let work = Work::default();
    let (steps, time) = (work.clone(), clock.clone());
    let answer: Result<String, Error> = engine
        .call("steps.late", &1, DAY)
        .run(async move {
            steps.step("a").await?;
            time.advance(std::time::Duration::from_secs(600));
            steps.step("b").await
        })
        .await;
    assert_eq!(answer, Err(Error::Superseded));
    assert_eq!(work.ran(), ["a"]);
}
