//! Annotated axum handlers.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use idem::http::{EngineLayer, IdempotencyKey, Json};
use idem::{Error, OnUnknown, idempotent};
use serde::Deserialize;

use crate::world::{Ask, Effects, Tenant, World};

#[derive(Deserialize)]
struct Order {
    amount: u64,
}

#[derive(Debug)]
enum PayError {
    Refused(usize),
    Idem(Error),
}

impl From<Error> for PayError {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl IntoResponse for PayError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(run) => {
                (StatusCode::PAYMENT_REQUIRED, format!("refused {run}")).into_response()
            }
            Self::Idem(error) => error.into_response(),
        }
    }
}

#[idempotent(
    name = "handler.pay",
    key = key.scoped_to(&tenant.0),
    payload = order.digest(),
    ttl = "24h",
    codec = idem::http::Response,
)]
async fn pay(
    State(effects): State<Effects>,
    Extension(tenant): Extension<Tenant>,
    key: IdempotencyKey,
    order: Json<Order>,
) -> Result<Response, PayError> {
    let run = effects.add();
    if order.amount == 0 {
        return Err(PayError::Refused(run));
    }
    let headers = [
        ("location", format!("/charges/{run}")),
        ("set-cookie", format!("run={run}")),
    ];
    Ok((StatusCode::CREATED, headers, order.amount.to_string()).into_response())
}

async fn serve(world: &World) -> crate::world::Client {
    let app = Router::new()
        .route("/pay", post(pay))
        .with_state(world.effects.clone())
        .layer(EngineLayer::new(&world.engine));
    world.serve(app).await
}

fn ask(key: &str) -> Ask {
    Ask::new("/pay", key).header("content-type", "application/json")
}

pub(crate) async fn an_annotated_handler_replays_its_response(world: World) {
    let client = serve(&world).await;
    let first = client.send(&ask("handler")).await;
    assert_eq!((first.status, first.text()), (201, "4200".to_owned()));
    assert_eq!(first.header("location"), Some("/charges/1"));
    assert_eq!(first.header("set-cookie"), None, "also to the first client");
    assert_eq!(client.send(&ask("handler")).await, first);
    // The digest is of what was received.
    let other = ask("handler").body("{\"amount\":4200,\"note\":1}");
    let problem = client.send(&other).await.problem(422, "key-reused");
    assert_eq!(problem["differs"], serde_json::json!(["order.digest()"]));
    // Another tenant's key is another key.
    let other = client.send(&ask("handler").tenant("b")).await;
    assert_eq!(other.header("location"), Some("/charges/2"));
    assert_eq!(world.effects.count(), 2);
}

pub(crate) async fn a_recorded_error_comes_back_as_its_response(world: World) {
    let client = serve(&world).await;
    let ask = ask("refused").body("{\"amount\":0}");
    let first = client.send(&ask).await;
    assert_eq!((first.status, first.text()), (402, "refused 1".to_owned()));
    assert_eq!(client.send(&ask).await, first);
    assert_eq!(world.effects.count(), 1);
}

#[idempotent(
    name = "handler.outer",
    key = key.unscoped(),
    ttl = "24h",
    codec = idem::http::Response,
)]
async fn outer(State(world): State<Inner>, key: IdempotencyKey) -> Result<Response, Error> {
    world.effects.add();
    // The record of this call is unknown: nobody can say what it answers.
    let inner = world
        .engine
        .call("handler.inner", "k", Duration::from_secs(60));
    Ok(match inner.run(async { Ok::<u8, Error>(1) }).await {
        Ok(_) => StatusCode::CREATED.into_response(),
        // A status that is recorded, unless the engine had no answer inside.
        Err(_) => StatusCode::FAILED_DEPENDENCY.into_response(),
    })
}

#[derive(Clone)]
struct Inner {
    engine: idem::Engine,
    effects: Effects,
}

pub(crate) async fn a_failed_inner_call_is_not_recorded_as_the_answer(world: World) {
    let inner = world
        .engine
        .call("handler.inner", "k", Duration::from_secs(60))
        .on_error(idem::on_error::Unknown);
    inner
        .run(async { Err::<u8, _>(Error::NoContext) })
        .await
        .unwrap_err();
    let state = Inner {
        engine: world.engine.clone(),
        effects: world.effects.clone(),
    };
    let app = Router::new()
        .route("/outer", post(outer))
        .with_state(state.clone())
        .layer(EngineLayer::new(&world.engine));
    let client = world.serve(app).await;
    let ask = Ask::new("/outer", "outer");
    assert_eq!(client.send(&ask).await.status, 424);
    client.send(&ask).await.problem(409, "outcome-unknown");
    assert_eq!(
        world.effects.count(),
        1,
        "the answer was not recorded, nor run again"
    );

    // The same below the layer.
    let handler = post(move |State(world): State<Inner>| async move {
        world.effects.add();
        let inner = world
            .engine
            .call("handler.inner", "k", Duration::from_secs(60));
        match inner.run(async { Ok::<u8, Error>(1) }).await {
            Ok(_) => StatusCode::CREATED.into_response(),
            Err(_) => StatusCode::FAILED_DEPENDENCY.into_response(),
        }
    });
    let rerun = |choice| world.builder().on_unknown(choice).build().unwrap();
    let app = Router::new()
        .route("/refuse", handler.clone().layer(rerun(OnUnknown::Refuse)))
        .route("/rerun", handler.layer(rerun(OnUnknown::Rerun)))
        .with_state(state);
    let client = world.serve(app).await;
    let refuse = Ask::new("/refuse", "layer");
    assert_eq!(client.send(&refuse).await.status, 424);
    client.send(&refuse).await.problem(409, "outcome-unknown");
    assert_eq!(world.effects.count(), 2);
    for runs in 3..5 {
        let rerun = client.send(&Ask::new("/rerun", "layer")).await;
        assert_eq!(rerun.status, 424);
        assert_eq!(world.effects.count(), runs, "it runs again, by choice");
    }
}

pub(crate) async fn bad_requests_are_problems(world: World) {
    let client = serve(&world).await;
    let no_key = Ask::bare("/pay")
        .header("x-tenant", "a")
        .header("content-type", "application/json");
    client.send(&no_key).await.problem(400, "key-missing");
    client
        .send(&ask("bad").header("idempotency-key", "canary-4111"))
        .await
        .problem(400, "key-invalid");
    for (body, what) in [
        ("{", "is not JSON"),
        ("{\"amount\":\"canary\"}", "not what this service takes"),
    ] {
        let problem = client.send(&ask("bad").body(body)).await;
        let detail = problem.problem(400, "body-invalid")["detail"].to_string();
        assert!(
            detail.contains(what) && !detail.contains("canary"),
            "{detail}"
        );
    }
    client
        .send(&Ask::new("/pay", "bad").header("content-type", "text/plain"))
        .await
        .problem(415, "body-not-json");
    client
        .send(&ask("bad").body(vec![b' '; 3_000_000]))
        .await
        .problem(413, "body-too-large");
    assert_eq!(world.effects.count(), 0);
}

pub(crate) async fn the_engine_of_a_layer_is_found(world: World) {
    let app = Router::new()
        .route("/pay", post(pay))
        .with_state(world.effects.clone());
    let client = world.serve(app).await;
    client.send(&ask("none")).await.problem(500, "internal");
    assert_eq!(world.effects.count(), 0);
    let client = serve(&world).await;
    assert_eq!(client.send(&ask("none")).await.status, 201);
}
