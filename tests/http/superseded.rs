//! A server that was paused for longer than its lease, and comes back.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use idem::http::IdempotencyLayer;
use idem::store::MemoryStore;
use idem::testing::ManualClock;
use idem::{Engine, OnInProgress, OnUnknown};
use tokio::sync::Notify;

use crate::world::{Ask, Protocol, StoreKind, World, until};

pub(crate) async fn a_client_never_gets_an_answer_that_is_not_recorded(world: World) {
    if (world.store, world.protocol) != (StoreKind::Sqlite, Protocol::Http1) {
        // It has a store of its own, whose clock can be moved.
        return;
    }
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let hour = Duration::from_secs(3_600);
    let gates = [Arc::new(Notify::new()), Arc::new(Notify::new())];
    let mut servers = Vec::new();
    for _ in 0..2 {
        let builder = Engine::builder(store.clone()).lease(hour).max_run(hour);
        let engine = builder.build().await.unwrap();
        let layer = IdempotencyLayer::builder(&engine)
            .unscoped()
            .on_in_progress(OnInProgress::Reject)
            .on_unknown(OnUnknown::Rerun)
            .build();
        let (effects, gates) = (world.effects.clone(), gates.clone());
        let handler = post(move || {
            let run = effects.add();
            let gate = Arc::clone(&gates[run - 1]);
            async move {
                gate.notified().await;
                (StatusCode::CREATED, [("x-run", run)], format!("run {run}"))
            }
        });
        let app = Router::new().route("/pay", handler).layer(layer.unwrap());
        servers.push(world.serve(app).await);
    }
    let ask = Ask::new("/pay", "paused");
    let send = |server: usize| {
        let (client, ask) = (servers[server].clone(), ask.clone());
        tokio::spawn(async move { client.send(&ask).await })
    };
    let paused = send(0);
    until(|| world.effects.count() == 1).await;
    clock.advance(2 * hour);
    let taker = send(1);
    until(|| world.effects.count() == 2).await;
    // The paused one ends while the other runs: there is no answer yet.
    gates[0].notify_one();
    let paused = paused.await.unwrap();
    assert_eq!(paused.problem(409, "superseded")["retryable"], true);
    gates[1].notify_one();
    let taken = taker.await.unwrap();
    assert_eq!((taken.status, taken.text()), (201, "run 2".to_owned()));
    let retry = servers[0].send(&ask).await;
    assert_eq!((retry.status, retry.text()), (201, "run 2".to_owned()));
}
