//! A JSON body that knows what was received.

use std::ops::Deref;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::response::IntoResponse as _;
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use crate::http::problem::{Problem, ProblemKind};
use crate::identity::hex;

/// A JSON body, with a digest of it for `payload`.
///
/// The digest is of the bytes as they were received, so it also covers what `T`
/// leaves out. A client that writes the same value another way sends another
/// payload; to compare values instead, name the fields in `payload`.
///
/// What is no JSON, or no `T`, is a problem with status 400; another
/// `Content-Type` is 415. The limit is that of axum's `DefaultBodyLimit`.
///
/// ```
/// # use idem::http::{IdempotencyKey, Json};
/// # #[derive(serde::Deserialize)] struct Order { amount: u64 }
/// #[idem::idempotent(
///     name = "pay",
///     key = key.scoped_to(&user),
///     payload = order.digest(),
///     ttl = "24h",
/// )]
/// async fn pay(user: String, key: IdempotencyKey, order: Json<Order>) -> Result<u64, idem::Error> {
///     Ok(order.amount)
/// }
/// ```
#[derive(Clone)]
pub struct Json<T> {
    value: T,
    digest: BodyDigest,
}

impl<T> Json<T> {
    /// Returns the digest of what was received.
    #[must_use]
    pub fn digest(&self) -> BodyDigest {
        self.digest.clone()
    }

    /// Returns the value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

// Never the value.
impl<T> std::fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Json(..)")
    }
}

/// The SHA-256 of a body.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct BodyDigest(String);

// A digest of few possible bodies can be guessed.
impl std::fmt::Debug for BodyDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BodyDigest(..)")
    }
}

impl<T, S> FromRequest<S> for Json<T>
where
    T: DeserializeOwned,
    S: Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::new(
                ProblemKind::BodyNotJson,
                "send the header `Content-Type: application/json`; nothing was done",
            ));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|error| {
            if error.into_response().status() == StatusCode::PAYLOAD_TOO_LARGE {
                Problem::new(
                    ProblemKind::BodyTooLarge,
                    "the body of the request is above the limit; nothing was done",
                )
            } else {
                Problem::body_unreadable()
            }
        })?;
        let value = serde_json::from_slice(&bytes).map_err(|error| invalid(&error))?;
        let digest = BodyDigest(hex(&Sha256::digest(&bytes)));
        Ok(Self { value, digest })
    }
}

/// Says where, and not what: the text of the error may hold values.
fn invalid(error: &serde_json::Error) -> Problem {
    let what = if error.is_data() {
        "is JSON, but not what this service takes"
    } else {
        "is not JSON"
    };
    Problem::new(
        ProblemKind::BodyInvalid,
        format!(
            "the body {what}, at line {} column {}; nothing was done",
            error.line(),
            error.column()
        ),
    )
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn json_is_known_by_its_type() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/merge-patch+json", true),
            ("text/json", false),
            ("application/jsonp", false),
            ("", false),
        ] {
            let value = HeaderValue::from_static(kind);
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, value)]);
            assert_eq!(is_json(&headers), expected, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
