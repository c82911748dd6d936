//! What the engine says, as a response.

use axum::response::{IntoResponse, Response};

use crate::error::Error;
use crate::http::problem::Problem;

/// The problem that the layer would answer with.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        Problem::from(&self).into_response()
    }
}
