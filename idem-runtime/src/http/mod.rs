//! `Idempotency-Key` for HTTP services.
//!
//! [`IdempotencyLayer`] is a tower layer: one `.layer(…)` around an axum
//! router, a tower service or a hyper server, and a repeated request gets the
//! first one's answer instead of being done again.
//!
//! ```
//! # use std::time::Duration;
//! # #[derive(Clone)] struct User { id: String }
//! # async fn build(engine: idem::Engine) -> Result<(), idem::Error> {
//! use idem::http::IdempotencyLayer;
//!
//! let layer = IdempotencyLayer::builder(&engine)
//!     // Whose key it is: what the authentication, a layer further out, found.
//!     .scope(|request| request.extensions.get::<User>().map(|user| user.id.clone()))
//!     .ttl(Duration::from_secs(86_400))
//!     .build()?;
//! # Ok(()) }
//! ```
//!
//! Rules
//!
//! 1. Requests with another method than POST or PATCH pass through untouched.
//!    So do requests without a key where it is optional.
//! 2. Scope, method, path and key name the record. Query, chosen headers and
//!    body must be equal when they repeat; otherwise 422.
//! 3. The whole request is read, at most 1 MiB, before anything is reserved.
//! 4. The handler runs in a task of its own, which a client that hangs up does
//!    not stop. Its first client gets its answer with all headers.
//! 5. Recorded are status, body, trailers, and the headers that say something
//!    about the answer itself; [`StatusTable`] has which statuses are. A replay
//!    is exactly that, and nothing is added.
//! 6. A body that is too long, or that does not end in time, goes to the first
//!    client as it comes; retries get the problem `not-replayable`.
//! 7. A handler that was cut off, panicked or answered 5xx leaves an unknown
//!    outcome. A retry is told so, and does not run, until it is settled.
//! 8. If the store cannot be asked, nothing runs: 503.
//!
//! What it does not promise: that a client that changes its key is recognized,
//! or anything of requests that pass through. Authentication, rate limits, CORS
//! and compression belong outside the layer: `docs/http.md` says why.
//!
//! With the feature `axum` there are also the parts for an annotated handler:
//! `IdempotencyKey`, `Json`, `Response`, and [`Error`](crate::Error) is a
//! response.

#[cfg(feature = "axum")]
mod axum;
mod body;
mod config;
mod engine_layer;
mod flight;
mod key;
mod layer;
mod policy;
mod problem;
mod response;
mod service;

use http::HeaderName;

#[cfg(feature = "axum")]
pub use self::axum::{BodyDigest, IdempotencyKey, Json, Response, ScopedKey, UnscopedKey};
pub use self::body::{Body, BoxError};
pub use self::config::Query;
pub use self::engine_layer::{EngineLayer, WithEngine};
pub use self::layer::{IdempotencyLayer, LayerBuilder, NoScope, Scoped};
pub use self::policy::StatusTable;
pub use self::problem::{PROBLEM_BASE, Problem, ProblemKind};
pub use self::service::Idempotency;

/// The header of the key.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header that marks replays, where that is chosen.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// How long the body of an answer may take to be recorded.
const ANSWER_TIME: std::time::Duration = std::time::Duration::from_secs(10);

/// Put into a response's extensions, keeps its answer out of the store: for
/// tokens and one-time secrets.
///
/// The work counts as done; retries get the problem `not-replayable`.
///
/// ```
/// let mut response = http::Response::new("the new token");
/// response.extensions_mut().insert(idem::http::Unrecorded);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Unrecorded;

/// Returns the URI that the client asked for: a nested router of axum shows its
/// handlers only the end of the path.
fn original_uri(parts: &http::request::Parts) -> &http::Uri {
    #[cfg(feature = "axum")]
    if let Some(original) = parts.extensions.get::<::axum::extract::OriginalUri>() {
        return &original.0;
    }
    &parts.uri
}
