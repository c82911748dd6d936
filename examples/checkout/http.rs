//! The HTTP side: validates first, then calls the service function and turns its answer into a
//! response. What is not a charge is a problem, see `problem.rs`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::charge::{Order, Shop, charge};
use crate::problem::Problem;

/// `POST /checkout`
pub(crate) async fn checkout(
    State(shop): State<Shop>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers)?;
    let customer = customer(&headers)?;
    let order = order(&body)?;

    let charge = charge(shop, customer, key, order).await?;

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
) -> Result<Response, Problem> {
    match shop.gateway.get(&id).await? {
        Some(charge) => Ok(Json(charge).into_response()),
        None => Err(Problem::not_found(id)),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<String, Problem> {
    match text(headers, "Idempotency-Key")? {
        None => Err(Problem::bad_request(
            "the Idempotency-Key header is missing",
        )),
        Some("") => Err(Problem::bad_request("the Idempotency-Key header is blank")),
        Some(key) if key.len() > 255 => Err(Problem::bad_request(
            "the Idempotency-Key header is longer than 255 bytes",
        )),
        Some(key) => Ok(key.to_owned()),
    }
}

/// Who is asking. A real shop takes this from its authentication, not from a header.
fn customer(headers: &HeaderMap) -> Result<String, Problem> {
    Ok(match text(headers, "X-Customer")? {
        None | Some("") => "anonymous".to_owned(),
        Some(customer) => customer.to_owned(),
    })
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    match (std::str::from_utf8(value.as_bytes()), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim())),
        _ => Err(Problem::bad_request(format!(
            "the {name} header is not one text"
        ))),
    }
}

fn order(body: &[u8]) -> Result<Order, Problem> {
    let order: Order = serde_json::from_slice(body)
        .map_err(|error| Problem::bad_request(format!("the body is not an order: {error}")))?;
    if order.order_id.trim().is_empty() || order.currency.trim().is_empty() {
        return Err(Problem::bad_request(
            "order_id and currency must not be blank",
        ));
    }
    Ok(order)
}
