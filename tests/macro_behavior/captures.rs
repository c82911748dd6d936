//! What a body holds, for how long, and in which order it is let go.

use idem::{Disposition, Error, Recovered, idempotent};

use crate::{Log, engine};

/// Says when it is dropped.
#[derive(Debug)]
struct Noisy(&'static str, Log);

impl Drop for Noisy {
    fn drop(&mut self) {
        self.1.note(self.0);
    }
}

#[derive(Debug)]
struct Pair {
    used: u32,
    _guard: Noisy,
}

async fn plain(
    log: Log,
    _first: Noisy,
    pair: Pair,
    _: Noisy,
    (left, _right): (Noisy, Noisy),
    last: Noisy,
) -> Result<u32, Error> {
    let _local = Noisy("local", log.clone());
    tokio::task::yield_now().await;
    log.note("body");
    assert_eq!((left.0, last.0), ("left", "last"));
    Ok(pair.used)
}

#[idempotent(key = id, ttl = "1h")]
async fn annotated(
    id: u32,
    log: Log,
    _first: Noisy,
    pair: Pair,
    _: Noisy,
    (left, _right): (Noisy, Noisy),
    last: Noisy,
) -> Result<u32, Error> {
    let _local = Noisy("local", log.clone());
    tokio::task::yield_now().await;
    log.note("body");
    assert_eq!((left.0, last.0), ("left", "last"));
    Ok(pair.used)
}

#[idempotent(key = id, ttl = "1h", on_cancel = abandon)]
async fn in_place(
    id: u32,
    log: Log,
    _first: Noisy,
    pair: Pair,
    _: Noisy,
    (left, _right): (Noisy, Noisy),
    last: Noisy,
) -> Result<u32, Error> {
    let _local = Noisy("local", log.clone());
    tokio::task::yield_now().await;
    log.note("body");
    assert_eq!((left.0, last.0), ("left", "last"));
    Ok(pair.used)
}

macro_rules! call {
    ($function:ident($log:expr $(, $id:expr)?)) => {{
        let noisy = |name| Noisy(name, $log.clone());
        let pair = Pair { used: 5, _guard: noisy("pair") };
        let tuple = (noisy("left"), noisy("right"));
        $function($($id,)? $log.clone(), noisy("first"), pair, noisy("unnamed"), tuple, noisy("last"))
    }};
}

#[tokio::test]
async fn arguments_are_dropped_after_the_body_last_one_first() {
    let (log, engine) = (Log::default(), engine().await);
    assert_eq!(call!(plain(log)).await, Ok(5));
    let expected = log.take();
    assert_eq!(
        expected,
        [
            "body", "local", "last", "right", "left", "unnamed", "pair", "first"
        ]
    );
    assert_eq!(engine.scope(call!(annotated(log, 1))).await, Ok(5));
    assert_eq!(log.take(), expected, "in a task of its own");
    assert_eq!(engine.scope(call!(in_place(log, 1))).await, Ok(5));
    assert_eq!(log.take(), expected, "in place");
}

#[tokio::test]
async fn a_replay_drops_the_arguments_and_runs_nothing() {
    let (log, engine) = (Log::default(), engine().await);
    engine.scope(call!(annotated(log, 1))).await.unwrap();
    log.take();
    engine.scope(call!(annotated(log, 1))).await.unwrap();
    let dropped = log.take();
    assert!(!dropped.contains(&"body") && !dropped.contains(&"local"));
    assert_eq!(dropped.len(), 6, "{dropped:?}");
}

/// A future that is never polled drops its arguments, and does nothing else.
#[tokio::test]
async fn a_call_that_is_never_polled_drops_its_arguments() {
    let log = Log::default();
    drop(call!(annotated(log, 1)));
    assert_eq!(log.take().len(), 6);
    drop(call!(in_place(log, 1)));
    assert_eq!(log.take().len(), 6);
}

#[derive(Debug, Clone)]
struct Gateway(Log);

#[allow(clippy::unused_async, reason = "a client of the outside world")]
impl Gateway {
    async fn find(&self, order: &str, line: &[u32]) -> Result<Recovered<String>, Error> {
        self.0.note("probe");
        Ok(match line.len() {
            1 => Recovered::NotDone,
            _ => Recovered::Done(format!("found {order}")),
        })
    }

    async fn pay(self, order: String, lines: Vec<u32>) -> Result<String, Error> {
        self.0.note("pay");
        if order == "fails once" && self.0.take() == ["pay"] {
            return Err(Error::NoContext);
        }
        Ok(format!("paid {order} {lines:?}"))
    }
}

fn unknown(_: &Error) -> Disposition {
    Disposition::Unknown
}

/// The probe borrows what the body consumes.
#[idempotent(
    key = order,
    ttl = "1h",
    on_error = classify(unknown),
    on_unknown = recover(gateway.find(&order, &lines)),
)]
async fn pay(gateway: Gateway, order: String, mut lines: Vec<u32>) -> Result<String, Error> {
    lines.push(9);
    gateway.pay(order, lines).await
}

#[idempotent(
    key = order,
    ttl = "1h",
    name = "pay_in_place",
    on_cancel = abandon,
    on_error = classify(unknown),
    on_unknown = recover(gateway.find(&order, lines)),
)]
async fn pay_in_place(gateway: Gateway, order: String, lines: &[u32]) -> Result<String, Error> {
    gateway.pay(order, lines.to_vec()).await
}

#[tokio::test]
async fn a_probe_borrows_what_the_body_consumes() {
    let (log, engine) = (Log::default(), engine().await);
    let call = |lines: &[u32]| {
        let lines = lines.to_vec();
        engine.scope(pay(Gateway(log.clone()), "fails once".to_owned(), lines))
    };
    assert_eq!(call(&[1]).await, Err(Error::NoContext));
    log.take();
    let answer = call(&[1, 2]).await;
    assert_eq!(answer.as_deref(), Ok("found fails once"));
    assert_eq!(log.take(), ["probe"], "the body did not run");
    let replay = call(&[1]).await;
    assert_eq!(replay, answer);
    assert_eq!(log.take(), Vec::<&str>::new(), "a replay asks nobody");
}

#[tokio::test]
async fn after_not_done_the_body_runs_in_the_same_attempt() {
    let (log, engine) = (Log::default(), engine().await);
    let call = || {
        let gateway = Gateway(log.clone());
        engine.scope(pay_in_place(gateway, "fails once".to_owned(), &[1]))
    };
    assert_eq!(call().await, Err(Error::NoContext));
    log.take();
    assert_eq!(call().await.as_deref(), Ok("paid fails once [1]"));
}
