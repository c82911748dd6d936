//! The expressions of the attribute: each once per call, in a fixed order,
//! before the arguments move.

use std::sync::atomic::Ordering;
use std::time::Duration;

use idem::{Engine, Error, How, idempotent, observe};

use crate::{Log, Runs, engine};

fn noted<T>(log: &Log, what: &'static str, value: T) -> T {
    log.note(what);
    value
}

#[idempotent(
    label = noted(&log, "label", order.len()),
    payload = (noted(&log, "payload 1", &order), noted(&log, "payload 2", amount)),
    key = (noted(&log, "key 1", &order), noted(&log, "key 2", amount)),
    scope = noted(&log, "scope", amount),
    ttl = noted(&log, "ttl", Duration::from_secs(60)),
    engine = noted(&log, "engine", &engine),
)]
async fn charge(engine: Engine, log: Log, order: String, amount: u32) -> Result<usize, Error> {
    log.note("body");
    drop(engine);
    let bytes = order.into_bytes();
    Ok(bytes.len() + usize::try_from(amount).unwrap())
}

#[idempotent(
    key = noted(log, "key", order),
    payload = noted(log, "payload", order.len()),
    ttl = "1h",
    on_cancel = abandon,
)]
async fn in_place(log: &Log, order: &str) -> Result<usize, Error> {
    log.note("body");
    Ok(order.len())
}

const GATHERED: [&str; 8] = [
    "engine",
    "ttl",
    "scope",
    "key 1",
    "key 2",
    "payload 1",
    "payload 2",
    "label",
];

#[tokio::test]
async fn every_expression_is_evaluated_once_a_call_before_the_body() {
    let (engine, log) = (engine().await, Log::default());
    let call = || charge(engine.clone(), log.clone(), "order".to_owned(), 1);
    assert_eq!(call().await, Ok(6));
    let mut expected = GATHERED.to_vec();
    expected.push("body");
    assert_eq!(log.take(), expected);

    let (answer, outcome) = observe(call()).await;
    assert_eq!(answer, Ok(6));
    assert_eq!(outcome.unwrap().how, How::Replayed);
    assert_eq!(log.take(), GATHERED, "a replay never polls the body");
}

#[tokio::test]
async fn nothing_is_evaluated_before_the_first_poll() {
    let (engine, log) = (engine().await, Log::default());
    drop(charge(engine, log.clone(), "order".to_owned(), 1));
    drop(in_place(&log, "order"));
    assert_eq!(log.take(), Vec::<&str>::new());
}

#[tokio::test]
async fn the_same_in_place() {
    let (engine, log) = (engine().await, Log::default());
    for expected in [&["key", "payload", "body"][..], &["key", "payload"]] {
        assert_eq!(engine.scope(in_place(&log, "order")).await, Ok(5));
        assert_eq!(log.take(), expected);
    }
}

/// Notes when it is polled, not only when it is called.
#[allow(clippy::manual_async_fn, reason = "the shape is the point")]
#[idempotent(key = id, ttl = "1h")]
fn counted(runs: Runs, id: u32) -> impl Future<Output = Result<u32, Error>> + Send {
    async move {
        let polls = std::future::poll_fn(|_| {
            runs.add();
            std::task::Poll::Ready(runs.0.load(Ordering::SeqCst))
        });
        Ok(id + u32::try_from(polls.await).unwrap())
    }
}

#[tokio::test]
async fn a_replay_never_polls_the_body() {
    let (engine, runs) = (engine().await, Runs::default());
    for _ in 0..3 {
        assert_eq!(engine.scope(counted(runs.clone(), 1)).await, Ok(2));
    }
    assert_eq!(runs.count(), 1);
}
