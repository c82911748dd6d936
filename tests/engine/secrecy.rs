//! Keys, scopes, payloads, labels, answers and the texts of a body's errors
//! appear in nothing that the library shows or logs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use idem::store::{MemoryStore, SqliteStore, Store};
use idem::testing::ManualClock;
use idem::{
    Engine, Error, OnInProgress, OnUnknown, Outcome, PlainCall, Recovered, context, on_error,
};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::faulty::{Fault, Faulty};
use crate::log::Log;
use crate::{DAY, idle, memory, until};

const KEY: &str = "canary-key-4111";
const SCOPE: &str = "canary-scope-5222";
const PAYLOAD: &str = "canary-payload-6333";
const LABEL: &str = "canary-label-7444";
const ANSWER: &str = "canary-answer-8555";
const TEXT: &str = "canary-text-9666";

/// Fails if a canary is in a text: as it is, as numbers, or in hexadecimal.
fn no_canary_in(text: &str) {
    for canary in [KEY, SCOPE, PAYLOAD, LABEL, ANSWER, TEXT] {
        let numbers = format!("{:?}", canary.as_bytes());
        let numbers = numbers.trim_matches(['[', ']']);
        let hex: String = canary.bytes().map(|byte| format!("{byte:02x}")).collect();
        for form in [canary, numbers, &hex] {
            assert!(!text.contains(form), "{canary} is in: {text}");
        }
    }
}

/// Looks at the debug text, also with line breaks.
fn shows_no_canary(shown: &impl Debug) {
    no_canary_in(&format!("{shown:?}"));
    no_canary_in(&format!("{shown:#?}").replace("\n", " ").replace("  ", ""));
}

/// Looks at an error's message too, and at those of its sources.
fn says_no_canary(error: &impl std::error::Error) {
    shows_no_canary(error);
    no_canary_in(&error.to_string());
    let mut source = error.source();
    while let Some(error) = source {
        no_canary_in(&error.to_string());
        source = error.source();
    }
}

fn call(engine: &Engine, step: &'static str) -> PlainCall {
    let call = engine
        .call(format!("secrecy.{step}"), &(KEY, 1), DAY)
        .scope(SCOPE)
        .payload(&(PAYLOAD, 1))
        .label(LABEL);
    shows_no_canary(&call);
    call
}

fn failed() -> Error {
    Error::Failed {
        message: TEXT.to_owned(),
    }
}

async fn succeeds() -> Result<String, Error> {
    tokio::task::yield_now().await;
    shows_no_canary(&context()?);
    Ok(ANSWER.to_owned())
}

async fn fails() -> Result<String, Error> {
    tokio::task::yield_now().await;
    Err(failed())
}

/// An error of the engine's own, with what it says of the call.
fn refused<T: Debug>((answer, outcome): (Result<T, Error>, Outcome)) -> Error {
    shows_no_canary(&outcome);
    let error = answer.unwrap_err();
    assert_ne!(error, failed(), "the engine's own");
    says_no_canary(&error);
    error
}

/// Calls end in every way that a body can make them end, and are called again.
async fn every_end_of_a_body(engine: &Engine) {
    for _ in 0..2 {
        let (answer, outcome) = call(engine, "stored").run_detailed(succeeds()).await;
        assert_eq!(answer.as_deref(), Ok(ANSWER));
        shows_no_canary(&outcome);
        let (answer, outcome) = call(engine, "failed").run_detailed(fails()).await;
        assert_eq!(answer, Err(failed()));
        shows_no_canary(&outcome);
        let kept = call(engine, "text").on_error(on_error::StoreText);
        shows_no_canary(&kept);
        assert_eq!(kept.run_detailed(fails()).await.0, Err(failed()));
        let released = call(engine, "released").on_error(on_error::Release);
        assert_eq!(released.run_detailed(fails()).await.0, Err(failed()));
    }
    let own = call(engine, "unknown").on_error(on_error::Unknown);
    assert_eq!(own.run(fails()).await, Err(failed()));
    let next = call(engine, "unknown").run_detailed(succeeds()).await;
    assert!(refused(next).is_unknown_outcome());
    let undecided =
        call(engine, "unknown").run_or_recover(async { Ok(Recovered::Unknown) }, succeeds());
    undecided.await.unwrap_err();

    tokio::spawn(call(engine, "panics").run(async {
        succeeds().await?;
        panic!("the user's own text");
        #[expect(unreachable_code, reason = "names the type")]
        fails().await
    }))
    .await
    .unwrap_err();
    let next = call(engine, "panics").run_detailed(succeeds()).await;
    assert!(refused(next).is_unknown_outcome());

    // The answer does not read back, or is not even written; texts of `serde`
    // and of the user's own implementations are in the errors in between.
    let lost = || call(engine, "lost").run_detailed(async { Ok((ANSWER.to_owned(), f64::NAN)) });
    let unwritable = || call(engine, "unwritable").run_detailed(async { Ok(Unwritable) });
    let unreadable = || call(engine, "unreadable").run_detailed(async { Ok(Unreadable) });
    lost().await.0.unwrap();
    unwritable().await.0.unwrap();
    unreadable().await.0.unwrap();
    for error in [
        refused(lost().await),
        refused(unwritable().await),
        refused(unreadable().await),
    ] {
        assert!(matches!(error, Error::NotReplayable { .. }), "{error}");
    }
    for step in ["lost", "unwritable", "unreadable", "stored"] {
        let call = call(engine, step).run_detailed(async { Ok(5_u8) });
        let error = refused(call.await);
        assert!(
            matches!(error, Error::Misuse { .. }),
            "another type: {error}"
        );
    }
}

#[derive(Debug, Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom(ANSWER))
    }
}

#[derive(Debug, Serialize)]
struct Unreadable;

impl<'de> Deserialize<'de> for Unreadable {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom(ANSWER))
    }
}

/// Calls are refused for what they ask.
async fn every_refusal(engine: &Engine) {
    let other = call(engine, "stored").payload(&PAYLOAD);
    assert!(refused(other.run_detailed(succeeds()).await).is_mismatch());

    let (start, started) = oneshot::channel();
    let (open, gate) = oneshot::channel();
    let inside = engine.clone();
    let running = tokio::spawn(call(engine, "running").run(async move {
        let same = call(&inside, "running").run_detailed(succeeds()).await;
        assert_eq!(refused(same), Error::Reentrant);
        start.send(()).ok();
        gate.await.ok();
        succeeds().await
    }));
    started.await.unwrap();
    shows_no_canary(engine);
    let rejected = call(engine, "running").on_in_progress(OnInProgress::Reject);
    assert!(refused(rejected.run_detailed(succeeds()).await).is_in_progress());
    open.send(()).unwrap();
    running.await.unwrap().unwrap();

    let unusable = BTreeMap::from([(KEY, f64::NAN)]);
    let ttl = Duration::ZERO;
    for call in [
        engine.call("secrecy.key", &(KEY, None::<u32>), DAY),
        engine.call("secrecy.key", &(KEY, ""), DAY).payload(PAYLOAD),
        engine.call("secrecy.key", &(KEY, 0.5, f64::NAN), DAY),
        engine.call("secrecy.key", &unusable, DAY).label(LABEL),
        engine.call("secrecy.key", KEY, DAY).scope(&unusable),
        engine.call("secrecy.key", KEY, DAY).payload(&(&unusable,)),
        engine.call("secrecy.key", KEY, DAY).payload(&Unwritable),
        engine.call("secrecy.key", KEY, ttl).scope(SCOPE),
        engine
            .call("secrecy.key", KEY, DAY)
            .on_unknown(OnUnknown::Recover),
    ] {
        shows_no_canary(&call);
        refused(call.run_detailed(succeeds()).await);
    }
}

/// A caller leaves while its body runs.
async fn left(engine: &Engine) {
    let (start, started) = oneshot::channel();
    let caller = tokio::spawn({
        let engine = engine.clone();
        async move {
            let body = async move {
                succeeds().await?;
                start.send(()).ok();
                std::future::pending::<Result<String, Error>>().await
            };
            call(&engine, "left").run_borrowed(body).await
        }
    });
    started.await.unwrap();
    caller.abort();
    idle(engine).await;
    let next = call(engine, "left").run_detailed(succeeds()).await;
    assert!(refused(next).is_unknown_outcome());
}

async fn down(engine: &Engine) {
    shows_no_canary(engine);
    let drained = engine.shutdown(Duration::from_secs(10)).await.unwrap();
    shows_no_canary(&drained);
    let late = call(engine, "late").run_detailed(succeeds()).await;
    assert_eq!(refused(late), Error::ShuttingDown);
}

async fn build(store: impl Store) -> Engine {
    let engine = Engine::builder(store).build().await.unwrap();
    shows_no_canary(&engine);
    engine
}

#[tokio::test]
async fn no_canary_is_shown_or_logged_however_calls_end() {
    let log = Log::start().await;
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("store.db"));
    for engine in [
        build(MemoryStore::new()).await,
        build(sqlite.await.unwrap()).await,
    ] {
        every_end_of_a_body(&engine).await;
        every_refusal(&engine).await;
        left(&engine).await;
        down(&engine).await;
    }
    let text = log.text();
    // It has been kept, and of every level.
    for part in ["secrecy.stored", "secrecy.panics", "INFO", "WARN", "DEBUG"] {
        assert!(text.contains(part), "{part} is not in the log");
    }
    no_canary_in(&text);
}

#[tokio::test]
async fn no_canary_is_shown_or_logged_when_the_store_fails() {
    let log = Log::start().await;
    let store = Faulty::default();
    let engine = Engine::builder(store.clone())
        .lease(Duration::from_millis(200))
        .store_timeout(Duration::from_millis(20))
        .reserve_timeout(Duration::from_millis(40))
        .build()
        .await
        .unwrap();
    for fault in [Fault::Break, Fault::Refuse, Fault::Hang, Fault::LoseReply] {
        let store = store.clone().on_reserve(vec![fault.clone(); 20]);
        let error = refused(call(&engine, "store").run_detailed(succeeds()).await);
        assert!(matches!(error, Error::Store(_)), "{error}");
        store.heal();
    }
    let faults = vec![Fault::Hang; 3].into_iter();
    let store = store
        .on_end(faults.clone().chain([Fault::Break]))
        .on_renew(faults.clone())
        .on_farewell(faults);
    let (answer, outcome) = call(&engine, "ends").run_detailed(succeeds()).await;
    assert_eq!(answer.as_deref(), Ok(ANSWER));
    assert!(!outcome.recorded);
    shows_no_canary(&outcome);
    idle(&engine).await;
    shows_no_canary(&store);
    let text = log.text();
    assert!(text.contains("secrecy.ends"));
    no_canary_in(&text);
}

#[tokio::test]
async fn no_canary_is_shown_or_logged_when_an_attempt_is_replaced() {
    let log = Log::start().await;
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let build = || async {
        let lease = Duration::from_secs(3600);
        let builder = Engine::builder(store.clone()).lease(lease).max_run(lease);
        builder.build().await.unwrap()
    };
    let (slow, quick) = (build().await, build().await);
    let (open, gate) = oneshot::channel();
    let reject = OnInProgress::Reject;
    let call_on = |engine| call(engine, "replaced").on_in_progress(reject);
    let zombie = tokio::spawn(call_on(&slow).run_detailed(async {
        gate.await.ok();
        succeeds().await
    }));
    until(|| slow.stats().attempts != 0).await;
    clock.advance(Duration::from_secs(7200));
    let (open_taker, gate) = oneshot::channel();
    let taker = call_on(&quick).on_unknown(OnUnknown::Rerun);
    let taker = tokio::spawn(taker.run_detailed(async {
        gate.await.ok();
        succeeds().await
    }));
    until(|| quick.stats().attempts != 0).await;
    open.send(()).unwrap();
    assert_eq!(refused(zombie.await.unwrap()), Error::Superseded);
    open_taker.send(()).unwrap();
    let (answer, outcome) = taker.await.unwrap();
    assert_eq!(answer.as_deref(), Ok(ANSWER));
    // What a store is given and keeps may be shown too.
    let record = store.record(&outcome.record.unwrap()).unwrap();
    assert_eq!(
        record.label.as_ref().unwrap().as_str(),
        LABEL,
        "it is there"
    );
    shows_no_canary(&record);
    let text = log.text();
    assert!(text.contains("ERROR"), "superseded");
    no_canary_in(&text);
}

#[tokio::test]
async fn a_builder_shows_its_operation_and_nothing_of_the_caller() {
    let engine = memory().await;
    let shown = format!("{:?}", call(&engine, "builder").on_error(on_error::Release));
    assert!(shown.contains("secrecy.builder"), "{shown}");
    no_canary_in(&shown);
}

#[tokio::test]
async fn a_context_shows_its_record_and_nothing_of_the_caller() {
    let engine = memory().await;
    let body = async {
        Ok::<_, Error>((
            format!("{:?}", context()?),
            context()?.record_id().to_string(),
        ))
    };
    let (shown, record) = call(&engine, "context").run(body).await.unwrap();
    assert!(shown.contains(&record), "{shown}");
    no_canary_in(&shown);
}
