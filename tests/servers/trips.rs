//! How many round trips a call costs, counted on the wire.

use std::time::Duration;

use idem::{Engine, Error, How, OnUnknown};

use crate::place::{Server, on_each_server, prefix, until};
use crate::proxy::Proxy;

const TTL: Duration = Duration::from_secs(3_600);

on_each_server! {
    and redis:
    a_first_call_takes_two_and_a_replay_one_or_two,
    a_takeover_takes_three_or_four,
    twenty_callers_of_one_key_take_as_many_as_one,
    eight_thousand_ids_take_nine_at_most,
}

/// An engine behind a proxy that counts all but the renewal thread's
/// connection, on which every statement of a call was prepared.
async fn warm(server: Server, connections: u32) -> (Engine, Proxy) {
    let (proxy, url) = Proxy::of_url(&server.url()).await;
    let builder = server.open(&url, &prefix(), connections).await;
    let engine = builder.build().await.unwrap();
    // The last one that was made: the start itself needs one only.
    proxy.ignore(proxy.accepted());
    for _ in 0..2 {
        call(&engine, "warm").await;
    }
    take_over(&engine, "warm too").await;
    // The connection of the start may still be on its way back to the pool.
    proxy.plan(None);
    (engine, proxy)
}

async fn call(engine: &Engine, key: &str) -> How {
    let call = engine.call("trips", key, TTL).on_unknown(OnUnknown::Rerun);
    let (answer, outcome) = call.run_detailed(async { Ok::<_, Error>(1) }).await;
    assert_eq!(answer, Ok(1));
    assert!(outcome.recorded);
    outcome.how
}

/// Leaves a key's outcome unknown.
async fn leave_unknown(engine: &Engine, key: &str) {
    let call = engine.call("trips", key, TTL);
    let panicked = tokio::spawn(call.run(async {
        assert!(idem::context().is_err(), "the body of the test panics");
        Ok::<i32, Error>(1)
    }));
    assert!(panicked.await.is_err());
}

async fn take_over(engine: &Engine, key: &str) {
    leave_unknown(engine, key).await;
    assert_eq!(call(engine, key).await, How::Executed);
}

async fn a_first_call_takes_two_and_a_replay_one_or_two(server: Server) {
    let (engine, proxy) = warm(server, 4).await;
    for key in ["one", "two", "three"] {
        proxy.plan(None);
        assert_eq!(call(&engine, key).await, How::Executed);
        assert_eq!(proxy.trips(), 2, "{key}, first");
        proxy.plan(None);
        assert_eq!(call(&engine, key).await, How::Replayed);
        let replay = if server == Server::MySql { 2 } else { 1 };
        assert_eq!(proxy.trips(), replay, "{key}, replay");
    }
}

async fn a_takeover_takes_three_or_four(server: Server) {
    let (engine, proxy) = warm(server, 4).await;
    leave_unknown(&engine, "taken").await;
    proxy.plan(None);
    assert_eq!(call(&engine, "taken").await, How::Executed);
    let takeover = if server == Server::MySql { 4 } else { 3 };
    assert_eq!(proxy.trips(), takeover);
}

async fn twenty_callers_of_one_key_take_as_many_as_one(server: Server) {
    let (engine, proxy) = warm(server, 4).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let all = engine.clone();
        let body = async move {
            until(|| all.stats().waiters == 19).await;
            Ok::<_, Error>(1)
        };
        calls.spawn(engine.call("trips.many", "key", TTL).run(body));
    }
    let answers = calls.join_all().await;
    assert!(answers.iter().all(|answer| *answer == Ok(1)), "{answers:?}");
    assert_eq!(proxy.trips(), 2);
}

/// One for each thousand, and one to make the question known to the server.
async fn eight_thousand_ids_take_nine_at_most(server: Server) {
    let (engine, proxy) = warm(server, 4).await;
    let inbox = engine.inbox("trips.import");
    for id in [0, 4_000, 7_999] {
        let received = inbox.receive(&id, async { Ok::<_, Error>(()) }).await;
        assert!(received.delivery().is_ack(), "{received:?}");
    }
    proxy.plan(None);
    let unseen = inbox.unseen(0..8_000).await.unwrap();
    let trips = proxy.trips();
    assert!(trips <= 9, "{trips} trips");
    assert_eq!((unseen.new.len(), unseen.finished), (7_997, 3));
    assert!(unseen.new.is_sorted(), "in the order of the ids");
}
