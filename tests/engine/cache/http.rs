//! The layer's replays are the same bytes with a cache as without.

use std::convert::Infallible;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode};
use idem::Engine;
use idem::http::IdempotencyLayer;
use tower::{Layer as _, ServiceExt as _};

use super::MIB;
use crate::Runs;
use crate::faulty::Faulty;

/// Sends a request, and writes out what comes back.
async fn send(engine: &Engine, runs: &Runs, key: &str, body: &'static str) -> String {
    let layer = IdempotencyLayer::builder(engine)
        .name("cache.http")
        .mark_replays()
        .unscoped()
        .build();
    let layer = layer.unwrap();
    let runs = runs.clone();
    let handler = tower::service_fn(move |request: Request<_>| {
        let runs = runs.clone();
        async move {
            let number = runs.add();
            let status = if request.uri().path() == "/declined" {
                StatusCode::PAYMENT_REQUIRED
            } else {
                StatusCode::CREATED
            };
            let response = Response::builder().status(status);
            let response = response.header("location", format!("/charges/{number}"));
            Ok::<_, Infallible>(response.body(Body::from(format!("run {number}"))).unwrap())
        }
    });
    let service = layer.layer(handler);
    let path = if body == "declined" {
        "/declined"
    } else {
        "/charges"
    };
    let request = Request::post(path).header("idempotency-key", key);
    let request = request.body(Body::from(body)).unwrap();
    let response = service.oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = to_bytes(Body::new(body), 4_096).await.unwrap();
    let how = head
        .extensions
        .get::<idem::Outcome>()
        .map(|outcome| outcome.how);
    format!("{} {:?} {:?} {body:?}", head.status, head.headers, how)
}

#[tokio::test]
async fn replayed_responses_are_the_same_with_a_cache() {
    let mut all = Vec::new();
    for cache in [0, MIB] {
        let (store, runs) = (Faulty::default(), Runs::default());
        let engine = Engine::builder(store.clone()).cache(cache);
        let engine = engine.build().await.unwrap();
        let mut told = Vec::new();
        for (key, body) in [
            ("k-1", "a"),
            ("k-1", "a"),
            ("k-1", "b"),
            ("k-1", "a"),
            ("k-2", "declined"),
            ("k-2", "declined"),
            ("k-2", "declined"),
        ] {
            told.push(send(&engine, &runs, key, body).await);
        }
        assert_eq!(runs.count(), 2);
        let asked = if cache == 0 { 7 } else { 3 };
        assert_eq!(store.reserves(), asked);
        all.push(told);
    }
    assert!(all[0][1].contains("idempotent-replayed"), "{}", all[0][1]);
    assert_eq!(all[0], all[1]);
}
