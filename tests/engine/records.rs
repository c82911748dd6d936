//! Records from code: what is found, what a change by hand does, and that
//! nothing else is ever changed.

use std::sync::Arc;
use std::time::Duration;

use idem::admin::{RecordRef, Settled};
use idem::record::State;
use idem::store::tiered::MemoryFront;
use idem::store::{MemoryStore, TieredStore};
use idem::testing::{CrashPoint, Testbed, assert_executed, assert_replayed};
use idem::{Engine, Error, TombstoneReason, idempotent};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, engine, until};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Refused {
    Declined(String),
    Idem(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

pub(crate) type Answer = Result<u64, Refused>;

#[idempotent(
    name = "records.charge", scope = tenant, key = (merchant, order), payload = amount,
    label = order, ttl = "24h"
)]
pub(crate) async fn charge(tenant: u32, merchant: String, order: u32, amount: u64) -> Answer {
    Ok(amount)
}

/// The same call, and the record that it has.
pub(crate) fn pay(order: u32, amount: u64) -> impl Future<Output = Answer> {
    charge(3, "m-1".to_owned(), order, amount)
}

pub(crate) fn record(engine: &Engine, order: u32) -> RecordRef {
    engine
        .record("records.charge")
        .scope(&3)
        .key(&("m-1", order))
}

/// A call that died between its effect and its record.
pub(crate) async fn lost(t: &Testbed, order: u32) {
    t.crash_at("records.charge", CrashPoint::AfterBody);
    t.scope(pay(order, 4_200)).await.unwrap_err();
}

pub(crate) fn misuse<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Err(Error::Misuse { reason }) => reason,
        other => panic!("{other:?} is no misuse"),
    }
}

#[tokio::test]
async fn a_resolved_record_is_replayed_to_the_function_as_that_answer() {
    let t = Testbed::new().await;
    lost(&t, 1).await;
    t.lapse();
    let record = record(t.engine(), 1);
    let settled = record.resolve(Answer::Ok(4_200), "ada", "charged").await;
    assert_eq!(settled, Ok(Settled::Done));
    assert_eq!(assert_replayed!(t.scope(pay(1, 4_200))), Ok(4_200));
    // The payload is still compared.
    let other = t.scope(pay(1, 1)).await.unwrap_err();
    assert!(matches!(other, Refused::Idem(error) if error.is_mismatch()));
    assert_eq!(t.runs("records.charge"), 1);
}

#[tokio::test]
async fn an_err_is_replayed_as_the_same_err() {
    let t = Testbed::new().await;
    lost(&t, 1).await;
    t.lapse();
    let declined = Refused::Declined("no funds".to_owned());
    let id = record(t.engine(), 1).id().unwrap();
    let settled = t
        .engine()
        .resolve(id, Answer::Err(declined.clone()), "ada", "declined");
    assert_eq!(settled.await, Ok(Settled::Done));
    assert_eq!(assert_replayed!(t.scope(pay(1, 4_200))), Err(declined));
}

#[tokio::test]
async fn its_identity_and_its_mistakes_are_those_of_a_call() {
    let engine = crate::memory().await;
    let long = "n".repeat(129);
    let of_call = async |name: &str, key: &serde_json::Value| {
        let call = engine.call(name.to_owned(), key, DAY).scope("tenant");
        let (answer, outcome) = call.run_detailed(async { Ok::<_, Error>(1) }).await;
        answer.map(|_| outcome.record.unwrap())
    };
    for (name, key) in [
        ("records.same", serde_json::json!(["m-1", 7])),
        ("records.same", serde_json::json!(null)),
        ("records.same", serde_json::json!([" ", 7])),
        (&*long, serde_json::json!(7)),
        ("", serde_json::json!(7)),
    ] {
        let named = engine.record(name.to_owned()).scope("tenant").key(&key);
        assert_eq!(named.id(), of_call(name, &key).await, "{name} {key}");
    }
    let nan = engine.record("records.same").key(&f64::NAN);
    assert!(matches!(nan.id(), Err(Error::Fingerprint { .. })));
    // A mistake is told by every method, and nothing is asked.
    assert_eq!(nan.get().await.err(), nan.id().err());
    assert_eq!(nan.audit().await.err(), nan.id().err());
    assert_eq!(nan.forget("ada", "why").await.err(), nan.id().err());
}

#[tokio::test]
async fn an_answer_that_json_cannot_give_back_is_refused_and_nothing_is_changed() {
    #[derive(Debug, Serialize, Deserialize)]
    struct OneWay(#[serde(serialize_with = "as_text")] u32);
    fn as_text<S: serde::Serializer>(_: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("seven")
    }

    let t = Testbed::with(|builder| builder.answer_limit(64)).await;
    lost(&t, 1).await;
    t.lapse();
    let record = record(t.engine(), 1);
    let before = record.get().await.unwrap();
    let long = "x".repeat(60);
    let refused = [
        misuse(record.resolve(Ok::<_, ()>(f64::NAN), "ada", "why").await),
        misuse(
            record
                .resolve(Ok::<_, ()>(Some(None::<u8>)), "ada", "why")
                .await,
        ),
        misuse(record.resolve(Ok::<_, ()>(OneWay(7)), "ada", "why").await),
        misuse(
            record
                .resolve(Ok::<_, ()>(long.clone()), "ada", "why")
                .await,
        ),
        misuse(
            record
                .resolve(Err::<(), _>(f64::INFINITY), "ada", "why")
                .await,
        ),
        misuse(
            record
                .resolve_json(&format!("\"{long}\""), "ada", "why")
                .await,
        ),
        misuse(record.resolve_json("", "ada", "why").await),
        misuse(record.resolve_json("1 2", "ada", "why").await),
        misuse(record.resolve_json("1}", "ada", "why").await),
        misuse(record.resolve_json("{\"a\":}", "ada", "why").await),
        misuse(record.resolve_json("1e999", "ada", "why").await),
    ];
    for reason in refused {
        assert!(reason.ends_with("nothing was changed"), "{reason}");
        assert!(!reason.contains("xx"), "no value: {reason}");
    }
    assert_eq!(record.get().await.unwrap(), before);
    assert_eq!(record.audit().await, Ok(vec![]));
}

#[tokio::test]
async fn json_is_kept_byte_for_byte() {
    let t = Testbed::new().await;
    lost(&t, 1).await;
    t.lapse();
    let record = record(t.engine(), 1);
    let settled = record.resolve_json(" 4200 ", "ada", "charged").await;
    assert_eq!(settled, Ok(Settled::Done));
    let kept = record.get().await.unwrap().unwrap().record.answer.unwrap();
    assert_eq!(kept.bytes, br#"{"Ok": 4200 }"#);
    assert!(kept.is_intact(&record.id().unwrap()));
    assert_eq!(assert_replayed!(t.scope(pay(1, 4_200))), Ok(4_200));
}

#[tokio::test]
async fn json_of_another_type_runs_nothing_and_can_be_forgotten() {
    let t = Testbed::new().await;
    lost(&t, 1).await;
    t.lapse();
    let record = record(t.engine(), 1);
    let settled = record.resolve_json("\"4200\"", "ada", "charged").await;
    assert_eq!(settled, Ok(Settled::Done));
    let answer = t.scope(pay(1, 4_200)).await;
    let reason = TombstoneReason::NotDecodable;
    let not_replayable = Refused::Idem(Error::NotReplayable { reason });
    assert_eq!(answer, Err(not_replayable));
    assert_eq!(t.runs("records.charge"), 1);
}

#[tokio::test]
async fn who_and_why_are_kept_and_neither_may_be_blank() {
    let t = Testbed::new().await;
    lost(&t, 1).await;
    t.lapse();
    let record = record(t.engine(), 1);
    let before = record.get().await.unwrap();
    for (by, why) in [("", "why"), ("ada", " "), ("\n", "why")] {
        misuse(record.resolve(Answer::Ok(1), by, why).await);
        misuse(record.resolve_json("1", by, why).await);
        misuse(record.release(by, why).await);
        misuse(record.forget(by, why).await);
    }
    assert_eq!(record.get().await.unwrap(), before);

    assert_eq!(record.release("ada", "not sent").await, Ok(Settled::Done));
    assert_eq!(record.forget("grace", "test").await, Ok(Settled::Done));
    let audit = record.audit().await.unwrap();
    let told: Vec<_> = audit
        .iter()
        .map(|entry| (entry.note.by(), entry.note.why(), entry.was))
        .collect();
    let was = [State::InProgress, State::Released];
    let expected = vec![("ada", "not sent", was[0]), ("grace", "test", was[1])];
    assert_eq!(told, expected);
    assert!(audit.iter().all(|entry| entry.at_us > 0 && !entry.forced));
}

#[tokio::test]
async fn a_released_record_runs_with_the_next_callers_payload() {
    let t = Testbed::new().await;
    lost(&t, 1).await;
    t.lapse();
    let released = record(t.engine(), 1).release("ada", "not sent").await;
    assert_eq!(released, Ok(Settled::Done));
    assert_eq!(assert_executed!(t.scope(pay(1, 1))), Ok(1));
}

#[tokio::test]
async fn an_attempt_that_holds_its_lease_is_changed_by_force_only() {
    let t = Testbed::new().await;
    let (open, gate) = oneshot::channel::<()>();
    let (start, started) = oneshot::channel();
    let call = t.engine().call("records.slow", &1, DAY);
    let slow = tokio::spawn(call.run(async {
        start.send(()).unwrap();
        gate.await.ok();
        Answer::Ok(1)
    }));
    started.await.unwrap();
    let record = t.engine().record("records.slow").key(&1);
    for settled in [
        record.resolve(Answer::Ok(2), "ada", "why").await,
        record.release("ada", "why").await,
        record.forget("ada", "why").await,
    ] {
        assert_eq!(settled, Ok(Settled::Running));
    }
    assert_eq!(record.audit().await, Ok(vec![]));

    let forced = record.clone().force();
    let settled = forced.resolve(Answer::Ok(2), "ada", "stuck").await;
    assert_eq!(settled, Ok(Settled::Done));
    assert!(record.audit().await.unwrap()[0].forced);
    // The holder comes back, and gets what is recorded.
    open.send(()).unwrap();
    assert_eq!(slow.await.unwrap(), Ok(2));
    let settled = forced.release("ada", "why").await;
    assert_eq!(settled, Ok(Settled::Ended), "force takes no answer away");
}

#[tokio::test]
async fn an_answer_is_only_forgotten() {
    let t = Testbed::new().await;
    t.scope(pay(1, 4_200)).await.unwrap();
    let record = record(t.engine(), 1);
    let resolved = record.resolve(Answer::Ok(1), "ada", "why").await;
    assert_eq!(resolved, Ok(Settled::Ended));
    assert_eq!(record.release("ada", "why").await, Ok(Settled::Ended));
    assert_eq!(assert_replayed!(t.scope(pay(1, 4_200))), Ok(4_200));
    let forgotten = record.forget("ada", "to do it once more").await;
    assert_eq!(forgotten, Ok(Settled::Done));
    assert_eq!(record.forget("ada", "again").await, Ok(Settled::Gone));
    assert_eq!(assert_executed!(t.scope(pay(1, 1))), Ok(1));
    assert_eq!(record.audit().await.unwrap().len(), 1);
    let absent = self::record(t.engine(), 2);
    assert_eq!(absent.get().await, Ok(None));
    assert_eq!(absent.release("ada", "why").await, Ok(Settled::Gone));
}

#[tokio::test]
async fn forgetting_an_expired_answer_takes_its_version_with_it() {
    let t = Testbed::new().await;
    let apply = |version: u64| {
        let call = t.engine().call("records.sync", &1, DAY).version(&version);
        call.run(async move { Ok::<_, Error>(version) })
    };
    apply(7).await.unwrap();
    t.clock().advance(DAY * 2);
    assert!(apply(6).await.unwrap_err().is_stale(), "not forgotten");
    let record = t.engine().record("records.sync").key(&1);
    let reset = record.forget("ada", "the source began anew").await;
    assert_eq!(reset, Ok(Settled::Done));
    assert_eq!(apply(6).await, Ok(6));
}

#[tokio::test]
async fn a_tombstone_is_resolved_with_its_answer() {
    let t = Testbed::with(|builder| builder.answer_limit(64)).await;
    let call = |text: &'static str| {
        let call = t.engine().call("records.long", &1, DAY);
        call.run(async move { Ok::<_, Error>(text.to_owned()) })
    };
    let long = "0123456789012345678901234567890123456789012345678901234567890123456789";
    call(long).await.unwrap();
    let reason = TombstoneReason::TooLarge;
    assert_eq!(call("").await, Err(Error::NotReplayable { reason }));
    let record = t.engine().record("records.long").key(&1);
    let short = Ok::<_, Error>("see the archive".to_owned());
    let settled = record.resolve(short.clone(), "ada", "archived").await;
    assert_eq!(settled, Ok(Settled::Done));
    assert_eq!(call("").await, short);
}

#[tokio::test]
async fn only_what_was_seen_is_changed() {
    let t = Testbed::new().await;
    lost(&t, 1).await;
    t.lapse();
    let record = record(t.engine(), 1);
    let fence = async || record.get().await.unwrap().unwrap().record.fence;
    let seen = fence().await;
    // A holder that comes back changes the state only.
    let other = record.clone().seen(seen, State::Unknown);
    assert_eq!(other.release("ada", "not sent").await, Ok(Settled::Changed));
    assert_eq!(record.release("ada", "not sent").await, Ok(Settled::Done));
    let stale = record.clone().seen(seen, State::Released);
    assert_eq!(stale.forget("grace", "why").await, Ok(Settled::Changed));
    let now = record.clone().seen(fence().await, State::Released);
    assert_eq!(now.forget("grace", "why").await, Ok(Settled::Done));
}

#[tokio::test]
async fn what_changes_between_look_and_write_is_left_alone() {
    let looked = Arc::new(Notify::new());
    let held = Fault::HoldReply(Arc::clone(&looked));
    let store = Faulty::default().on_look([held]);
    let engine = engine(store.clone()).await;
    let call = || engine.call("records.race", &1, DAY);
    let failed = Refused::Declined(String::new());
    let body = async move { Answer::Err(failed) };
    call()
        .on_error(idem::on_error::Unknown)
        .run(body)
        .await
        .unwrap_err();

    let record = engine.record("records.race").key(&1);
    let slow = record.clone();
    let slow = tokio::spawn(async move { slow.release("ada", "not sent").await });
    until(|| store.looks() == 1).await;
    let quick = record.resolve(Answer::Ok(7), "grace", "charged").await;
    assert_eq!(quick, Ok(Settled::Done));
    looked.notify_one();
    assert_eq!(slow.await.unwrap(), Ok(Settled::Changed));
    assert_eq!(call().run(async { Answer::Ok(0) }).await, Ok(7));
    let audit = record.audit().await.unwrap();
    assert_eq!(audit.len(), 1, "only what was done");
    assert_eq!(audit[0].note.by(), "grace");
}

#[tokio::test]
async fn once_begun_a_change_is_made_though_nobody_waits_for_it() {
    let hold = Arc::new(Notify::new());
    let store = Faulty::default().on_settle([Fault::HoldUntil(Arc::clone(&hold))]);
    let engine = engine(store.clone()).await;
    engine
        .call("records.left", &1, DAY)
        .run(async { Answer::Ok(7) })
        .await
        .unwrap();
    let record = engine.record("records.left").key(&1);
    let left = record.clone();
    let caller = tokio::spawn(async move { left.forget("ada", "why").await });
    until(|| store.settles() == 1).await;
    caller.abort();
    caller.await.unwrap_err();
    hold.notify_one();
    until(|| engine.stats().tasks == 0).await;
    assert_eq!(record.audit().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_settled_record_is_kept_for_as_long_as_it_was_said() {
    const YEARS: Duration = Duration::from_secs(50 * 365 * 86_400);
    let t = Testbed::new().await;
    for order in 1..=4 {
        lost(&t, order).await;
    }
    t.lapse();
    let nth = |order| record(t.engine(), order);
    let zero = nth(1).keep(Duration::ZERO).release("ada", "why").await;
    misuse(zero);
    let answer = || Answer::Ok(1);
    for settled in [
        nth(1).resolve(answer(), "ada", "why").await,
        nth(2).keep(DAY).resolve(answer(), "ada", "why").await,
        nth(3).release("ada", "why").await,
        nth(4).keep(idem::Ttl::Forever).release("ada", "why").await,
    ] {
        assert_eq!(settled, Ok(Settled::Done));
    }
    let kept = async |order| {
        let seen = nth(order).get().await.unwrap().unwrap();
        let expires_us = seen.record.expires_us;
        expires_us.map(|at| Duration::from_micros((at - seen.now_us).try_into().unwrap()))
    };
    assert_eq!(kept(1).await, None);
    assert_eq!(kept(2).await, Some(DAY));
    assert_eq!(kept(3).await, Some(DAY));
    assert_eq!(kept(4).await, None);
    t.clock().advance(YEARS);
    assert_eq!(assert_replayed!(t.scope(pay(1, 4_200))), Ok(1));
    assert_executed!(t.scope(pay(2, 4_200))).unwrap();
}

#[tokio::test]
async fn the_front_of_a_tiered_store_forgets_too() {
    let store = TieredStore::new(MemoryFront::new(), MemoryStore::new());
    let (engine, runs) = (engine(store).await, Runs::default());
    let call = || {
        let runs = runs.clone();
        let call = engine.call("records.tiered", &1, DAY);
        call.run(async move { Ok::<_, Error>(runs.add()) })
    };
    assert_eq!(
        (call().await, call().await, call().await),
        (Ok(1), Ok(1), Ok(1))
    );
    let record = engine.record("records.tiered").key(&1);
    assert_eq!(record.forget("ada", "why").await, Ok(Settled::Done));
    assert_eq!(call().await, Ok(2));
}

#[tokio::test]
async fn a_store_without_a_side_for_operators_is_told_at_once() {
    let engine = engine(Faulty::default().adminless()).await;
    misuse(engine.admin());
    let record = engine.record("records.none").key(&1);
    misuse(record.get().await);
    misuse(record.audit().await);
    misuse(record.forget("ada", "why").await);
    let id = record.id().unwrap();
    misuse(engine.resolve(id, Answer::Ok(1), "ada", "why").await);
}
