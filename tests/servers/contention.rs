//! Others on the same server: transactions on our rows, and a pool that the
//! body has emptied.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::store::MemoryStore;
use idem::{Engine, Error, OnInProgress, OnUnknown, RecordId};

use crate::place::{Server, on_each_server, prefix};
use crate::session::{Pool, Session};

const TTL: Duration = Duration::from_secs(3_600);

on_each_server! {
    fifty_who_wait_for_a_transaction_that_rolls_back_see_no_deadlock,
    a_body_that_takes_every_connection_keeps_its_lease,
}

/// The record of a key, which is the same on every store.
async fn record(operation: &'static str, key: u32) -> RecordId {
    let engine = Engine::builder(MemoryStore::new()).build().await.unwrap();
    let call = engine.call(operation, &key, TTL);
    let (_, outcome) = call.run_detailed(async { Ok::<_, Error>(1) }).await;
    outcome.record.unwrap()
}

async fn fifty_who_wait_for_a_transaction_that_rolls_back_see_no_deadlock(server: Server) {
    const CALLERS: i64 = 50;
    let (url, prefix) = (server.url(), prefix());
    let table = format!("{prefix}records");
    let engine = server.open(&url, &prefix, 50).await.build().await.unwrap();
    let mut other = Session::open(&url).await;
    let mut watch = Session::open(&url).await;
    let runs = Arc::new(AtomicUsize::new(0));
    for key in 0..3 {
        let id = other.bytes(record("storm", key).await.as_bytes());
        let (digest, claim) = (other.bytes(&[1; 32]), other.bytes(&[1; 16]));
        other.run("begin").await;
        let insert = format!(
            "insert into {table} (id, operation, payload_digest, payload_elements, state, fence,
                 attempt, claim, takeovers, doubt, started_us)
             values ({id}, 'storm', {digest}, {digest}, 0, 1, 1, {claim}, 0, false, 1)"
        );
        other.run(&insert).await;
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..CALLERS {
            let runs = Arc::clone(&runs);
            // Who rejects shares no flight: each goes to the server.
            let call = engine
                .call("storm", &key, TTL)
                .on_in_progress(OnInProgress::Reject);
            callers.spawn(call.run(async move {
                runs.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Error>(key)
            }));
        }
        watch.until(&watch.waiting(&table), CALLERS).await;
        other.run("rollback").await;
        let answers = callers.join_all().await;
        let wrong: Vec<_> = answers
            .iter()
            .filter(|answer| !matches!(answer, Err(Error::InProgress { .. })))
            .filter(|answer| **answer != Ok(key))
            .collect();
        assert_eq!(wrong, Vec::<&Result<u32, Error>>::new());
        assert!(answers.contains(&Ok(key)), "nobody ran");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    if server != Server::Postgres {
        // Of this server's other tests too, but without a storm there are none.
        let deadlocks = "select cast(variable_value as signed) from \
            information_schema.global_status where variable_name = 'innodb_deadlocks'";
        assert!(watch.number(deadlocks).await > 0, "there was no storm");
    }
}

async fn a_body_that_takes_every_connection_keeps_its_lease(server: Server) {
    const LEASE: Duration = Duration::from_millis(400);
    const GRACE: Duration = Duration::from_millis(100);
    let (url, prefix) = (server.url(), prefix());
    let second = server.open(&url, &prefix, 2).await;
    let second = second.lease(LEASE).grace(GRACE).build().await.unwrap();
    let pool = Pool::open(&url, 3).await;
    let first = pool.engine(server, &prefix).await;
    let first = first.lease(LEASE).grace(GRACE).build().await.unwrap();
    let body = {
        let second = second.clone();
        async move {
            let taken = [pool.take().await, pool.take().await, pool.take().await];
            // Somebody who would take over as soon as the lease lapses.
            let taker = second.call("pool.all", &1, TTL);
            let taker = taker.on_unknown(OnUnknown::Rerun);
            let taker = tokio::spawn(taker.run(async { Ok::<_, Error>(2) }));
            let mut watch = Session::open(&url).await;
            let lease = format!("select coalesce(max(lease_until_us), 0) from {prefix}records");
            let from = watch.number(&lease).await;
            let two_leases = i64::try_from(2 * LEASE.as_micros()).unwrap();
            watch.until(&lease, from + two_leases).await;
            drop(taken);
            Ok::<_, Error>((1, taker))
        }
    };
    // The answer of the taker is looked at when it has one.
    let (tell, told) = tokio::sync::oneshot::channel();
    let call = first.call("pool.all", &1, TTL).run(async move {
        let (answer, taker) = body.await?;
        tell.send(taker).ok();
        Ok::<i32, Error>(answer)
    });
    assert_eq!(call.await, Ok(1));
    assert_eq!(told.await.unwrap().await.unwrap(), Ok(1));
}
