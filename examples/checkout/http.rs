//! The HTTP side: extractors validate, the service function charges, and its answer becomes a
//! response. What is not a charge is a problem document, mostly one of `idem`'s.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use idem::http::{IdempotencyKey, Json as Received, Problem, ProblemKind};
use serde_json::json;

use crate::charge::{ChargeError, Order, Shop, charge};

/// For a retry that has nothing better to go by.
const SOON: Duration = Duration::from_secs(1);

/// `POST /checkout`
pub(crate) async fn checkout(
    State(shop): State<Shop>,
    Customer(customer): Customer,
    key: IdempotencyKey,
    order: Received<Order>,
) -> Result<Response, ChargeError> {
    let order = order.into_inner();
    if order.order_id.trim().is_empty() || order.currency.trim().is_empty() {
        let blank = "order_id and currency must not be blank";
        return Ok(Problem::new(ProblemKind::BodyInvalid, blank).into_response());
    }

    // Without the customer it is no key: `charge` would not take it.
    let charge = charge(shop, key.scoped_to(&customer), order).await?;

    // Built from the recorded answer alone, so that a replay is the same response to the byte.
    let location = format!("/charges/{}", charge.id);
    Ok((
        StatusCode::CREATED,
        [(header::LOCATION, location)],
        Json(charge),
    )
        .into_response())
}

/// `GET /charges/{id}`, where `Location` points.
pub(crate) async fn show(
    State(shop): State<Shop>,
    Path(id): Path<String>,
) -> Result<Response, ChargeError> {
    Ok(match shop.gateway.get(&id).await? {
        Some(charge) => Json(charge).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

/// Who is asking. A real shop takes this from its authentication, not from a header.
pub(crate) struct Customer(String);

impl<S: Sync> FromRequestParts<S> for Customer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let customer = parts.headers.get("X-Customer");
        let customer = customer.and_then(|value| value.to_str().ok());
        let customer = customer.filter(|text| !text.trim().is_empty());
        Ok(Self(customer.unwrap_or("anonymous").to_owned()))
    }
}

impl IntoResponse for ChargeError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused { reason } => {
                let body = Json(json!({ "error": reason }));
                (StatusCode::PAYMENT_REQUIRED, body).into_response()
            }
            Self::Unreachable => {
                let body = Json(json!({ "error": "the payment gateway cannot be reached" }));
                let retry = [(header::RETRY_AFTER, SOON.as_secs())];
                (StatusCode::SERVICE_UNAVAILABLE, retry, body).into_response()
            }
            // Not a failure: money may have moved. The retry finds out, see `find_charge`.
            Self::AnswerLost => Problem::new(
                ProblemKind::OutcomeUnknown,
                "send the same request with the same key again to find out",
            )
            .with_retry_after(SOON)
            .into_response(),
            Self::Idem(error) => error.into_response(),
        }
    }
}
