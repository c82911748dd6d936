//! What is recorded is replayed as the same value, or not at all.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::task::{Context, Poll, Waker};

use idem::{Engine, Error, How, TombstoneReason, idempotent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{DAY, Runs, engine, memory, until};

/// Calls one key three times: the first runs, and all get `value`.
async fn replays<T>(engine: &Engine, key: &str, value: Result<T, Failure>)
where
    T: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + 'static,
{
    let runs = Runs::default();
    for call in 0..3 {
        let (body_runs, body_value) = (runs.clone(), value.clone());
        let answer = engine
            .call(format!("replay.{key}"), key, DAY)
            .run_detailed(async move {
                body_runs.add();
                body_value
            });
        let (answer, outcome) = answer.await;
        assert_eq!(answer, value, "call {call} of {key}");
        let how = if call == 0 {
            How::Executed
        } else {
            How::Replayed
        };
        assert_eq!(outcome.how, how);
        assert!(outcome.recorded);
    }
    assert_eq!(runs.count(), 1, "{key}");
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Failure {
    Declined { code: u32 },
    Idem(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

#[tokio::test]
async fn empty_and_false_values_are_answers_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = idem::store::SqliteStore::open(folder.path().join("store.db"));
    for engine in [memory().await, engine(sqlite.await.unwrap()).await] {
        replays(&engine, "unit", Ok(())).await;
        replays(&engine, "none", Ok(None::<u32>)).await;
        replays(&engine, "zero", Ok(0)).await;
        replays(&engine, "false", Ok(false)).await;
        replays(&engine, "text", Ok(String::new())).await;
        replays(&engine, "list", Ok(Vec::<u8>::new())).await;
        replays(&engine, "large", Ok(u128::MAX)).await;
        replays(&engine, "map", Ok(BTreeMap::from([(1, Some(2))]))).await;
        replays::<()>(&engine, "err", Err(Failure::Declined { code: 51 })).await;
    }
}

/// Calls one key three times: the first caller gets its own value, the others
/// that it cannot be replayed, and the body ran once.
async fn tombstones<T>(engine: &Engine, key: &str, value: T, reason: TombstoneReason)
where
    T: Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
{
    let runs = Runs::default();
    for call in 0..3 {
        let (body_runs, body_value) = (runs.clone(), value.clone());
        let answer: Result<T, Error> = engine
            .call(format!("tombstone.{key}"), key, DAY)
            .run(async move {
                body_runs.add();
                Ok(body_value)
            })
            .await;
        if call == 0 {
            assert_eq!(format!("{:?}", answer.unwrap()), format!("{value:?}"));
        } else {
            assert_eq!(answer.unwrap_err(), Error::NotReplayable { reason });
        }
    }
    assert_eq!(runs.count(), 1, "{key}");
}

/// Serializes, and never reads back.
#[derive(Debug, Clone, Serialize)]
struct OneWay;

impl<'de> Deserialize<'de> for OneWay {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("never"))
    }
}

/// Reads back, and never serializes.
#[derive(Debug, Clone, Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("never"))
    }
}

#[tokio::test]
async fn what_cannot_be_given_back_becomes_a_tombstone_never_another_value() {
    let engine = memory().await;
    let lost = TombstoneReason::NotDecodable;
    tombstones(&engine, "some-none", Some(None::<u8>), lost).await;
    tombstones(&engine, "some-unit", Some(()), lost).await;
    tombstones(&engine, "nan", f64::NAN, lost).await;
    tombstones(&engine, "infinity", vec![Some(f32::INFINITY)], lost).await;
    tombstones(&engine, "one-way", OneWay, lost).await;
    tombstones(
        &engine,
        "unwritable",
        Unwritable,
        TombstoneReason::NotEncodable,
    )
    .await;
    let large = "x".repeat(1024 * 1024);
    tombstones(&engine, "large", large, TombstoneReason::TooLarge).await;
}

#[tokio::test]
async fn followers_of_a_tombstone_get_no_value() {
    let engine = memory().await;
    let (go, wait) = tokio::sync::oneshot::channel::<()>();
    let leader = tokio::spawn(engine.call("t", &1, DAY).run(async move {
        wait.await.ok();
        Ok::<_, Error>(f64::NAN)
    }));
    until(|| engine.stats().attempts != 0).await;
    let follower = tokio::spawn(engine.call("t", &1, DAY).run(async { Ok::<_, Error>(1.0) }));
    until(|| engine.stats().waiters != 0).await;
    go.send(()).unwrap();
    assert!(leader.await.unwrap().unwrap().is_nan());
    assert_eq!(
        follower.await.unwrap().unwrap_err(),
        Error::NotReplayable {
            reason: TombstoneReason::NotDecodable
        }
    );
}

#[tokio::test]
async fn an_answer_at_the_limit_is_kept_and_one_byte_more_is_not() {
    let engine = Engine::builder(idem::store::MemoryStore::new())
        .answer_limit(16)
        .build()
        .await
        .unwrap();
    // {"Ok":"1234567"} has 16 bytes.
    replays(&engine, "fits", Ok("1234567".to_owned())).await;
    let over = "12345678".to_owned();
    tombstones(&engine, "over", over, TombstoneReason::TooLarge).await;
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct WithSkipped {
    kept: u32,
    #[serde(skip)]
    skipped: u32,
}

#[tokio::test]
async fn the_first_caller_gets_the_copy_that_replays_get() {
    let engine = memory().await;
    for _ in 0..2 {
        let answer: Result<WithSkipped, Error> = engine
            .call("skip", &1, DAY)
            .run(async {
                Ok(WithSkipped {
                    kept: 1,
                    skipped: 2,
                })
            })
            .await;
        assert_eq!(
            answer.unwrap(),
            WithSkipped {
                kept: 1,
                skipped: 0
            }
        );
    }
}

#[derive(Debug, PartialEq)]
struct Shown(String);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Shown {
    fn from(error: Error) -> Self {
        Self(format!("engine: {error}"))
    }
}

#[idempotent(key = order, name = "replay.text", ttl = "1h", engine = engine, on_error = store_text)]
async fn fails_with_text(engine: Engine, runs: Runs, order: u32) -> Result<(), Shown> {
    runs.add();
    Err(Shown("declined: é".repeat(500)))
}

#[tokio::test]
async fn under_store_text_the_text_is_replayed_cut_to_four_kib() {
    let (engine, runs) = (memory().await, Runs::default());
    let own = fails_with_text(engine.clone(), runs.clone(), 1).await;
    assert_eq!(own.unwrap_err().0, "declined: é".repeat(500));
    let replayed = fails_with_text(engine.clone(), runs.clone(), 1).await;
    let text = replayed.unwrap_err().0;
    let text = text.strip_prefix("engine: ").unwrap();
    assert!(text.len() <= 4096 && text.len() > 4090);
    assert!("declined: é".repeat(500).starts_with(text));
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_type_that_cannot_read_an_old_answer_gets_not_replayable_and_never_runs() {
    let store = idem::store::MemoryStore::new();
    let old = engine(store.clone()).await;
    let answer: Result<u32, Error> = old.call("deploy", &1, DAY).run(async { Ok(1) }).await;
    assert_eq!(answer, Ok(1));
    let new = engine(store).await;
    let runs = Runs::default();
    let body = runs.clone();
    let answer: Result<String, Error> = new
        .call("deploy", &1, DAY)
        .run(async move {
            body.add();
            Ok("new".to_owned())
        })
        .await;
    assert_eq!(
        answer,
        Err(Error::NotReplayable {
            reason: TombstoneReason::NotDecodable
        })
    );
    assert_eq!(runs.count(), 0);
}

/// Panics when it is serialized.
#[derive(Debug, Deserialize)]
struct Bomb;

impl Serialize for Bomb {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("in `Serialize`")
    }
}

/// The call panicked with this text after its body ran, and the next caller is
/// told so and runs nothing.
async fn panicked_after_its_body<T: Debug + Send + 'static>(
    first: tokio::task::JoinHandle<Result<T, Error>>,
    text: &str,
    next: impl Future<Output = Result<T, Error>>,
    runs: &Runs,
) {
    let panic = first.await.unwrap_err().into_panic();
    assert_eq!(
        *panic.downcast::<&str>().unwrap(),
        text,
        "goes on in its caller"
    );
    let next = next.await;
    assert!(
        matches!(
            next,
            Err(Error::UnknownOutcome {
                reason: idem::UnknownReason::Panicked,
                ..
            })
        ),
        "{next:?}"
    );
    assert_eq!(runs.count(), 1);
}

#[tokio::test]
async fn a_panic_while_the_answer_is_serialized_goes_on_in_its_caller_and_leaves_it_unknown() {
    for here in [false, true] {
        let (engine, runs) = (memory().await, Runs::default());
        let call = || {
            let (engine, runs) = (engine.clone(), runs.clone());
            async move {
                let call = engine.call("replay.bomb", &1, DAY);
                let body = async move {
                    runs.add();
                    Ok(Bomb)
                };
                if here {
                    call.run_borrowed(body).await
                } else {
                    call.run(body).await
                }
            }
        };
        panicked_after_its_body(tokio::spawn(call()), "in `Serialize`", call(), &runs).await;
    }
}

#[tokio::test]
async fn a_panic_while_an_error_is_classified_goes_on_in_its_caller_and_leaves_it_unknown() {
    let (engine, runs) = (memory().await, Runs::default());
    let call = || {
        let runs = runs.clone();
        engine
            .call("replay.classify", &1, DAY)
            .on_error(idem::on_error::Classify(|_: &Error| {
                panic!("in `classify`")
            }))
            .run(async move {
                runs.add();
                Err::<(), _>(Error::NoContext)
            })
    };
    panicked_after_its_body(tokio::spawn(call()), "in `classify`", call(), &runs).await;
}

#[tokio::test]
async fn floats_are_replayed_bit_by_bit() {
    // Of every magnitude, and ordinary ones with all their digits.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut doubles = vec![-0.0, f64::MIN_POSITIVE / 3.0, f64::MAX, 0.1 + 0.2];
    for number in 0..5_000 {
        let any = f64::from_bits(next());
        if any.is_finite() {
            doubles.push(any);
        }
        let below_one = f64::from_bits(next() >> 12 | 0x3FF0_0000_0000_0000) - 1.0;
        doubles.push(below_one * f64::from(number));
    }
    let singles: Vec<_> = (0..5_000)
        .map(|_| f32::from_bits(u32::try_from(next() >> 32).unwrap()))
        .filter(|single| single.is_finite())
        .collect();
    let engine = memory().await;
    for _ in 0..2 {
        let sent = (doubles.clone(), singles.clone());
        let call = engine.call("replay.floats", &1, DAY);
        let (back_doubles, back_singles): (Vec<f64>, Vec<f32>) =
            call.run(async { Ok::<_, Error>(sent) }).await.unwrap();
        let differ = std::iter::zip(&doubles, &back_doubles)
            .find(|(sent, back)| sent.to_bits() != back.to_bits());
        assert_eq!(differ, None);
        let differ = std::iter::zip(&singles, &back_singles)
            .find(|(sent, back)| sent.to_bits() != back.to_bits());
        assert_eq!(differ, None);
    }
}

tokio::task_local! {
    static CALLER: ();
}

/// However quick the store is, the body has a task of its own, in which nothing of
/// the caller's is seen that would be missing once the caller has gone. A replay
/// needs no task at all, and so nobody to wake the caller.
#[tokio::test]
async fn no_body_runs_in_its_callers_task_and_a_replay_at_hand_is_there_at_once() {
    let engine = memory().await;
    let call = || {
        let call = engine.call("replay.task", &1, DAY);
        call.run(async { Ok::<_, Error>(CALLER.try_with(|()| ()).is_ok()) })
    };
    assert_eq!(CALLER.scope((), call()).await, Ok(false));
    let mut again = std::pin::pin!(call());
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(again.as_mut().poll(&mut context), Poll::Ready(Ok(false)));
}
