//! axum handlers, called through a router: extractors as parameters, the
//! engine from the state, the answer as JSON.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use idem::{Engine, Error, idempotent};
use serde::{Deserialize, Serialize};
use tower::ServiceExt as _;

use crate::{Runs, engine};

#[derive(Debug, Clone)]
struct App {
    idem: Engine,
    runs: Runs,
}

#[derive(Debug, Deserialize)]
struct NewOrder {
    id: String,
    amount: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    number: u32,
}

#[derive(Debug, Serialize, Deserialize)]
enum ApiError {
    Engine(Error),
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self::Engine(error) = self;
        let status = match &error {
            Error::PayloadMismatch { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, error.to_string()).into_response()
    }
}

/// Who is asking, as an extractor of the application's own.
#[derive(Debug)]
struct Tenant(u32);

impl<S: Sync> FromRequestParts<S> for Tenant {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        let header = parts
            .headers
            .get("tenant")
            .ok_or(StatusCode::UNAUTHORIZED)?;
        let text = header.to_str().map_err(|_| StatusCode::BAD_REQUEST)?;
        text.parse().map(Self).map_err(|_| StatusCode::BAD_REQUEST)
    }
}

/// `axum::Json` has no serde of its own: the inner type is what is recorded.
#[idempotent(
    key = order.id,
    scope = tenant,
    payload = order.amount,
    ttl = "24h",
    engine = app.idem,
)]
async fn record(app: Arc<App>, tenant: u32, order: NewOrder) -> Result<Order, ApiError> {
    app.runs.add();
    Ok(Order {
        number: order.amount,
    })
}

async fn create(
    State(app): State<Arc<App>>,
    Tenant(tenant): Tenant,
    Json(order): Json<NewOrder>,
) -> Result<Json<Order>, ApiError> {
    record(app, tenant, order).await.map(Json)
}

/// Annotated itself: every extractor is a pattern that the key sees through.
#[axum::debug_handler]
#[idempotent(
    key = (shop, order),
    scope = tenant,
    payload = options.gift,
    ttl = "24h",
    engine = app.idem,
)]
async fn confirm(
    State(app): State<Arc<App>>,
    Tenant(tenant): Tenant,
    Path((shop, order)): Path<(String, u32)>,
    Query(options): Query<Options>,
) -> Result<String, ApiError> {
    app.runs.add();
    Ok(format!("{shop} {order} {tenant} {}", options.gift))
}

#[idempotent(key = order, ttl = "24h", engine = app.idem)]
#[axum::debug_handler(state = Arc<App>)]
async fn cancel(State(app): State<Arc<App>>, Path(order): Path<u32>) -> Result<String, ApiError> {
    app.runs.add();
    Ok(format!("cancelled {order}"))
}

#[derive(Debug, Deserialize)]
struct Options {
    gift: bool,
}

struct Client(Router, Runs);

impl Client {
    async fn new() -> Self {
        let (idem, runs) = (engine().await, Runs::default());
        let app = Arc::new(App {
            idem,
            runs: runs.clone(),
        });
        let router = Router::new()
            .route("/orders", post(create))
            .route("/{shop}/orders/{order}/confirm", get(confirm))
            .route("/orders/{order}/cancel", post(cancel))
            .with_state(app);
        Self(router, runs)
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        tenant: u32,
        body: &str,
    ) -> (StatusCode, String) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("tenant", tenant)
            .header("content-type", "application/json")
            .body(Body::from(body.to_owned()))
            .unwrap();
        let response = self.0.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_response() {
    let client = Client::new().await;
    let create = |tenant, amount: u32| {
        let body = format!(r#"{{"id":"order 1","amount":{amount}}}"#);
        let client = &client;
        async move { client.send("POST", "/orders", tenant, &body).await }
    };
    let first = create(1, 5).await;
    assert_eq!(first, (StatusCode::OK, r#"{"number":5}"#.to_owned()));
    assert_eq!(create(1, 5).await, first);
    assert_eq!(client.1.count(), 1);
    let (status, _) = create(1, 6).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    create(2, 6).await;
    assert_eq!(client.1.count(), 2, "another tenant's order is another one");
}

#[tokio::test]
async fn a_handler_may_be_annotated_itself() {
    let client = Client::new().await;
    let path = "/books/orders/7/confirm?gift=true";
    for _ in 0..2 {
        let (status, text) = client.send("GET", path, 3, "").await;
        assert_eq!((status, text.as_str()), (StatusCode::OK, "books 7 3 true"));
    }
    assert_eq!(client.1.count(), 1);
}

#[tokio::test]
async fn a_checking_attribute_may_stand_below() {
    let client = Client::new().await;
    for _ in 0..2 {
        let (status, text) = client.send("POST", "/orders/7/cancel", 3, "").await;
        assert_eq!((status, text.as_str()), (StatusCode::OK, "cancelled 7"));
    }
    assert_eq!(client.1.count(), 1);
}
