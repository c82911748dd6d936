//! Others on the same server: transactions on our rows, and a pool that the
//! body has emptied.

use std::sync::Arc;
use std::time::Duration;

use idem::identity::{Fingerprint, RecordId};
use idem::record::Claim;
use idem::store::{Reserve, Reserved, Takeover};
use idem::{Error, OnUnknown};

use crate::place::{Server, on_each_server, prefix};
use crate::session::{Pool, Session};

const TTL: Duration = Duration::from_secs(3_600);

on_each_server! {
    fifty_who_wait_for_a_transaction_that_rolls_back_see_no_deadlock,
    a_body_that_takes_every_connection_keeps_its_lease,
}

fn reserve(id: u8, claim: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([id; 32]),
        operation: "storm".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: 30_000_000,
        grace_us: 5_000_000,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

/// Asks the store itself: an engine would ask again after an error.
async fn fifty_who_wait_for_a_transaction_that_rolls_back_see_no_deadlock(server: Server) {
    const CALLERS: u8 = 50;
    let (url, prefix) = (server.url(), prefix());
    let table = format!("{prefix}records");
    // As in processes of their own: one store would have most of them wait here.
    let mut stores = Vec::new();
    for _ in 0..CALLERS {
        stores.push(server.store(&url, &prefix, 1).await);
    }
    let mut other = Session::open(&url).await;
    let mut watch = Session::open(&url).await;
    for id in 0..3 {
        let key = other.bytes(&[id; 32]);
        let (digest, claim) = (other.bytes(&[1; 32]), other.bytes(&[99; 16]));
        other.run("begin").await;
        let insert = format!(
            "insert into {table} (id, operation, payload_digest, payload_elements, state, fence,
                 attempt, claim, takeovers, doubt, started_us)
             values ({key}, 'storm', {digest}, {digest}, 0, 1, 1, {claim}, 0, false, 1)"
        );
        other.run(&insert).await;
        let mut callers = tokio::task::JoinSet::new();
        for (claim, store) in (0..).zip(&stores) {
            let store = Arc::clone(store);
            callers.spawn(async move { store.reserve(&reserve(id, claim)).await });
        }
        watch.until(&watch.waiting(&table), CALLERS.into()).await;
        other.run("rollback").await;
        let told = callers.join_all().await;
        let (won, lost): (Vec<_>, Vec<_>) = told
            .iter()
            .partition(|told| matches!(told, Ok(Reserved::Won(_))));
        assert_eq!(won.len(), 1, "{told:?}");
        for told in lost {
            assert!(matches!(told, Ok(Reserved::InProgress { .. })), "{told:?}");
        }
    }
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
