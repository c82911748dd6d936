//! Errors as problem documents (RFC 9457): what a client may do next is in the status, the type
//! and `Retry-After`.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use idem::Error;
use serde_json::json;

use crate::charge::ChargeError;

/// For a retry that has nothing better to go by.
const SOON: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: &'static str,
    title: &'static str,
    detail: String,
    retry_after: Option<Duration>,
}

impl Problem {
    fn new(
        status: StatusCode,
        kind: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let detail = detail.into();
        Self {
            status,
            kind,
            title,
            detail,
            retry_after: None,
        }
    }

    fn retry_after(self, wait: impl Into<Option<Duration>>) -> Self {
        Self {
            retry_after: wait.into(),
            ..self
        }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "bad-request",
            "The request is not valid",
            detail,
        )
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not-found",
            "There is no such charge",
            detail,
        )
    }

    fn unavailable(kind: &'static str, detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            kind,
            "Checkout is away for a moment",
            detail,
        )
        .retry_after(SOON)
    }

    /// Not a failure: money may have moved. The retry finds out, see `find_charge` in `charge.rs`.
    fn outcome_unknown(retry_after: Option<Duration>) -> Self {
        Self::new(
            StatusCode::CONFLICT,
            "outcome-unknown",
            "Whether this order was charged is not known yet",
            "send the same request with the same key again to find out",
        )
        .retry_after(retry_after)
    }
}

impl From<ChargeError> for Problem {
    fn from(error: ChargeError) -> Self {
        match error {
            ChargeError::Refused { reason } => Self::new(
                StatusCode::PAYMENT_REQUIRED,
                "charge-refused",
                "The charge was refused",
                reason,
            ),
            ChargeError::Unreachable => {
                Self::unavailable("gateway-away", "the payment gateway cannot be reached")
            }
            ChargeError::AnswerLost => Self::outcome_unknown(Some(SOON)),
            ChargeError::Idem(error) => error.into(),
        }
    }
}

/// The texts of `idem` name no key, argument or stored value, so they may be shown.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::PayloadMismatch { .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "key-reused",
                "This key was used for another order",
                detail,
            ),
            Error::InProgress { retry_after, .. } => Self::new(
                StatusCode::CONFLICT,
                "in-progress",
                "This order is being charged",
                detail,
            )
            .retry_after(retry_after),
            Error::UnknownOutcome { retry_after, .. } => Self::outcome_unknown(retry_after),
            Error::Superseded => Self::outcome_unknown(Some(SOON)),
            Error::InvalidKey { .. } => Self::bad_request(detail),
            Error::Store(_) | Error::ShuttingDown => Self::unavailable("store-away", detail),
            _ => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "Something broke",
                detail,
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("https://checkout.example/problems/{}", self.kind),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let json_type = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut response = (self.status, json_type, body.to_string()).into_response();
        if let Some(wait) = self.retry_after {
            // Whole seconds, rounded up: a client that comes too early only has to wait again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let value = HeaderValue::from(seconds.max(1));
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
        response
    }
}
