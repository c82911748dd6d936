//! The caller's future is dropped after every number of polls from none until
//! it ends, on servers: one run, nothing left behind, and every connection of
//! the user's pool goes back to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::{Engine, Error, Stats, idempotent};

use crate::place::{Server, on_each_server, prefix, until};
use crate::polled::{Polled, polled};
use crate::session::Pool;

const LEASE: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_millis(100);
const CONNECTIONS: u32 = 4;

on_each_server! {
    and redis:
    a_call_that_is_dropped_at_any_poll_runs_once_and_leaves_nothing,
}

type Runs = Arc<AtomicUsize>;

async fn work(runs: Runs, order: usize) -> Result<usize, Error> {
    runs.fetch_add(1, Ordering::SeqCst);
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    Ok(order)
}

#[idempotent(key = order, name = "cancel.finish", ttl = "1h", engine = engine)]
async fn finish(engine: Engine, runs: Runs, order: usize) -> Result<usize, Error> {
    work(runs, order).await
}

#[idempotent(
    key = order, name = "cancel.abandon", ttl = "1h", engine = engine, on_cancel = abandon
)]
async fn abandon(engine: Engine, runs: Runs, order: usize) -> Result<usize, Error> {
    work(runs, order).await
}

async fn idle(engine: &Engine) {
    until(|| engine.stats() == Stats::default()).await;
}

/// Drops `call` after every number of polls, on keys from `first` on, and
/// returns how many there were.
async fn drop_at_every_poll<F>(
    engine: &Engine,
    call: impl Fn(Engine, Runs, usize) -> F,
    first: usize,
    finishes: bool,
) -> usize
where
    F: Future<Output = Result<usize, Error>> + Send + 'static,
{
    let mut polls = 0;
    loop {
        let (runs, key) = (Runs::default(), first + polls);
        let call = || call(engine.clone(), Arc::clone(&runs), key);
        if let Polled::Ended(answer) = polled(call(), polls).await {
            assert_eq!(answer, Ok(key));
            assert_eq!(runs.load(Ordering::SeqCst), 1);
            idle(engine).await;
            return polls;
        }
        // The next caller waits while the record is in progress.
        let second = call().await;
        let third = call().await;
        let runs = runs.load(Ordering::SeqCst);
        assert_eq!(runs, 1, "after {polls} polls: {second:?}");
        assert_eq!(second, third, "after {polls} polls");
        match second {
            Ok(answer) => assert_eq!(answer, key),
            Err(Error::UnknownOutcome { .. }) if !finishes => {}
            Err(other) => panic!("after {polls} polls: {other:?}"),
        }
        idle(engine).await;
        polls += 1;
    }
}

async fn a_call_that_is_dropped_at_any_poll_runs_once_and_leaves_nothing(server: Server) {
    let (url, prefix) = (server.url(), prefix());
    // Makes the schema.
    let own = server.open(&url, &prefix, 2).await;
    let pool = match server {
        Server::Redis => None,
        _ => Some(Pool::open(&url, CONNECTIONS).await),
    };
    let builder = match &pool {
        Some(pool) => pool.engine(server, &prefix).await,
        None => own,
    };
    let engine = builder.lease(LEASE).grace(GRACE).build().await.unwrap();
    // Where a poll ends differs from round to round: another thread answers.
    for round in 0..5 {
        let first = round * 1_000;
        assert!(drop_at_every_poll(&engine, finish, first, true).await >= 1);
        // The body alone takes four.
        assert!(drop_at_every_poll(&engine, abandon, first, false).await >= 4);
    }
    let Some(pool) = pool else { return };
    // A connection is given back in a task of its own. All can be had at once.
    until(|| pool.open_and_idle().0 == pool.open_and_idle().1).await;
    let mut all = Vec::new();
    for _ in 0..CONNECTIONS {
        all.push(pool.take().await);
    }
    assert_eq!(pool.open_and_idle().1, 0);
}
