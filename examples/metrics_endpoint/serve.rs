//! The server: one handler, and the metrics.

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use idem::http::{EngineLayer, IdempotencyKey, Json};
use idem::{Engine, Error, idempotent};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Deserialize;

/// The body of a request.
#[derive(Deserialize)]
pub(crate) struct Order {
    amount: u64,
}

/// Charges once, and answers each retry with the same response.
#[idempotent(
    name = "charges.create",
    key = key.unscoped(),
    payload = order.digest(),
    ttl = "24h",
    codec = idem::http::Response,
)]
async fn charge(key: IdempotencyKey, order: Json<Order>) -> Result<Response, Error> {
    // Here a gateway would be asked.
    let charged = format!("charged {}", order.amount);
    Ok((StatusCode::CREATED, charged).into_response())
}

/// Makes the service.
pub(crate) fn app(engine: &Engine, metrics: PrometheusHandle) -> Router {
    Router::new()
        .route("/charges", post(charge))
        .layer(EngineLayer::new(engine))
        // Not for the world: it says how much you sell. Serve it on a port of its own.
        .route("/metrics", get(async move || metrics.render()))
}
