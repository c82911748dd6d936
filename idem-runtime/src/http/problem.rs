//! What the layer says instead of an answer: problem documents (RFC 9457).

use std::borrow::Cow;
use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use super::body::Body;
use super::key::KeyMistake;
use crate::error::{Error, StoreErrorKind};
use crate::identity::RecordId;

/// In front of the name of a problem, to make its type.
pub const PROBLEM_BASE: &str = "urn:idem:problem:";

/// For a retry that has nothing better to go by.
const SOON: Duration = Duration::from_secs(1);

/// What kind of problem it is: the end of its type, which never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The header is required and missing: 400.
    KeyMissing,
    /// The header is there and is no key: 400.
    KeyInvalid,
    /// The request does not say on whose behalf it is: 403.
    ScopeMissing,
    /// The request's body is above the limit: 413.
    BodyTooLarge,
    /// The request's body ended early: 400.
    BodyUnreadable,
    /// The request's body is not what the handler takes: 400.
    BodyInvalid,
    /// The request's body is not declared as JSON: 415.
    BodyNotJson,
    /// A request with this key is being processed: 409, and worth a retry.
    InProgress,
    /// The key was used for another request: 422, and final.
    KeyReused,
    /// An earlier request with this key ended without an answer: 409.
    OutcomeUnknown,
    /// This attempt was replaced while it ran: 409, and worth a retry.
    Superseded,
    /// A newer version is recorded: 409, and final for this one.
    Stale,
    /// The work is done, its answer cannot be given back: 409, and final.
    NotReplayable,
    /// The server is shutting down: 503, and worth a retry.
    ShuttingDown,
    /// The store of records is away: 503; nothing ran.
    StoreUnavailable,
    /// The server is not set up as it should be: 500.
    Internal,
}

impl ProblemKind {
    /// Returns the name, the end of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyInvalid => "key-invalid",
            Self::ScopeMissing => "scope-missing",
            Self::BodyTooLarge => "body-too-large",
            Self::BodyUnreadable => "body-unreadable",
            Self::BodyInvalid => "body-invalid",
            Self::BodyNotJson => "body-not-json",
            Self::InProgress => "in-progress",
            Self::KeyReused => "key-reused",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::Superseded => "superseded",
            Self::Stale => "stale",
            Self::NotReplayable => "not-replayable",
            Self::ShuttingDown => "shutting-down",
            Self::StoreUnavailable => "store-unavailable",
            Self::Internal => "internal",
        }
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::KeyMissing | Self::KeyInvalid | Self::BodyUnreadable | Self::BodyInvalid => {
                StatusCode::BAD_REQUEST
            }
            Self::ScopeMissing => StatusCode::FORBIDDEN,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyNotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InProgress
            | Self::OutcomeUnknown
            | Self::Superseded
            | Self::Stale
            | Self::NotReplayable => StatusCode::CONFLICT,
            Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::ShuttingDown | Self::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether there is a record that an operator may want to look at.
    pub(super) const fn is_about_a_record(self) -> bool {
        matches!(
            self,
            Self::OutcomeUnknown | Self::Superseded | Self::NotReplayable
        )
    }

    /// Returns the title, the same for every problem of this kind.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::KeyMissing => "The idempotency key is missing",
            Self::KeyInvalid => "The idempotency key is not valid",
            Self::ScopeMissing => "The request does not say on whose behalf it is made",
            Self::BodyTooLarge => "The request is too large",
            Self::BodyUnreadable => "The request could not be read",
            Self::BodyInvalid => "The request is not valid",
            Self::BodyNotJson => "The request is not JSON",
            Self::InProgress => "A request with this idempotency key is being processed",
            Self::KeyReused => "This idempotency key was used for another request",
            Self::OutcomeUnknown => "Whether the earlier request took effect is not known",
            Self::Superseded => "This request was replaced by a retry of it",
            Self::Stale => "A newer version was processed before this one",
            Self::NotReplayable => "The request was processed, and its answer is not kept",
            Self::ShuttingDown => "The server is shutting down",
            Self::StoreUnavailable => "The record of requests is not available",
            Self::Internal => "The server is not set up for this request",
        }
    }
}

/// A problem document (RFC 9457), before it becomes a response.
///
/// It never holds the key, the scope or anything of the request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Problem {
    /// What kind it is.
    pub kind: ProblemKind,
    /// What happened, whether the handler ran, and what to do.
    pub detail: Cow<'static, str>,
    /// Whether the same request with the same key may succeed later without
    /// anybody's help.
    pub retryable: bool,
    /// When it is worth asking again, where that is known.
    pub retry_after: Option<Duration>,
    /// The record that an operator looks at.
    pub record: Option<RecordId>,
    /// What differs from the first request with this key: names, no values.
    pub differs: Vec<String>,
    base: Cow<'static, str>,
}

/// The members of the document.
#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    differs: &'a [String],
}

impl Problem {
    /// Creates a final problem, with a detail that clients may read.
    pub fn new(kind: ProblemKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retryable: false,
            retry_after: None,
            record: None,
            differs: Vec::new(),
            base: Cow::Borrowed(PROBLEM_BASE),
        }
    }

    /// Says that the same request with the same key is worth sending again, and
    /// when.
    #[must_use]
    pub fn with_retry_after(self, after: Duration) -> Self {
        Self {
            retryable: true,
            retry_after: Some(after),
            ..self
        }
    }

    pub(super) fn key_missing() -> Self {
        Self::new(
            ProblemKind::KeyMissing,
            "send the header with a key of your own choice, the same for every retry of this request; nothing was done",
        )
    }

    pub(super) fn key_invalid(mistake: KeyMistake) -> Self {
        let detail = format!(
            "the idempotency key cannot be used: {}; nothing was done",
            mistake.text()
        );
        Self::new(ProblemKind::KeyInvalid, detail)
    }

    pub(super) fn scope_missing() -> Self {
        Self::new(
            ProblemKind::ScopeMissing,
            "an idempotency key means something only together with who sends it, which this request does not say; nothing was done",
        )
    }

    pub(super) fn body_too_large(limit: usize) -> Self {
        let detail = format!(
            "the body of a request with an idempotency key has at most {limit} bytes; nothing was done"
        );
        Self::new(ProblemKind::BodyTooLarge, detail)
    }

    pub(super) fn body_unreadable() -> Self {
        Self::new(
            ProblemKind::BodyUnreadable,
            "the body of the request ended early; nothing was done",
        )
    }

    fn stale() -> Self {
        Self::new(
            ProblemKind::Stale,
            "a newer version of what this request changes is recorded; this request did nothing; do not send it again",
        )
    }

    #[must_use]
    pub(super) fn base(mut self, base: Cow<'static, str>) -> Self {
        self.base = base;
        self
    }

    /// Returns the type, a URI: a base and the kind's name.
    #[must_use]
    pub fn type_uri(&self) -> String {
        format!("{}{}", self.base, self.kind.name())
    }

    /// Makes the response: status, `Content-Type`, `Retry-After` and the
    /// document.
    #[must_use]
    pub fn to_response(&self) -> Response<Body> {
        let document = Document {
            r#type: self.type_uri(),
            title: self.kind.title(),
            status: self.kind.status().as_u16(),
            detail: &self.detail,
            retryable: self.retryable,
            record: self.record.map(|record| record.to_string()),
            differs: &self.differs,
        };
        // Strings, numbers and booleans can always be written.
        let text = serde_json::to_vec(&document).unwrap_or_default();
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = self.kind.status();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(wait) = self.retry_after {
            // Whole seconds, rounded up: who comes too early only waits again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        match error {
            Error::InProgress { retry_after } => Self::new(
                ProblemKind::InProgress,
                "another request with this key is being processed, or its server died a short while ago; send the same request with the same key again later",
            )
            .with_retry_after(*retry_after),
            Error::PayloadMismatch { differs } => {
                let mut problem = Self::new(
                    ProblemKind::KeyReused,
                    "this key was used before for a request that differs; nothing was done; use a new key for a new request",
                );
                problem.differs.clone_from(differs);
                problem
            }
            Error::UnknownOutcome {
                record,
                reason,
                retry_after,
                ..
            } => {
                let next = if retry_after.is_some() {
                    "send the same request with the same key again later to find out"
                } else {
                    "find out before the request is sent under another key; an operator settles the record"
                };
                let mut problem = Self::new(
                    ProblemKind::OutcomeUnknown,
                    format!(
                        "an earlier request with this key ended without an answer ({reason}), and its effect may or may not have happened; this request did nothing; {next}"
                    ),
                );
                problem.record = Some(*record);
                problem.retry_after = *retry_after;
                problem.retryable = retry_after.is_some();
                problem
            }
            Error::Superseded => Self::new(
                ProblemKind::Superseded,
                "this request was taken over by a retry while it ran; send the same request with the same key again for the recorded answer",
            )
            .with_retry_after(SOON),
            Error::Stale { .. } => Self::stale(),
            Error::NotReplayable { reason } => Self::new(
                ProblemKind::NotReplayable,
                format!(
                    "an earlier request with this key was processed to its end, but its answer cannot be given again ({reason}); this request did nothing; do not send it under another key"
                ),
            ),
            Error::ShuttingDown => Self::new(
                ProblemKind::ShuttingDown,
                "the server is shutting down; send the same request with the same key again",
            )
            .with_retry_after(SOON),
            Error::Store(error) => {
                let problem = Self::new(
                    ProblemKind::StoreUnavailable,
                    "the record of earlier requests could not be asked, so nothing was done",
                );
                match error.kind() {
                    StoreErrorKind::Transient => problem.with_retry_after(SOON),
                    _ => problem,
                }
            }
            Error::NotRecorded(_) => not_recorded(),
            Error::InvalidKey { .. } => Self::new(
                ProblemKind::KeyInvalid,
                "the key, or a part of it, is missing or blank; nothing was done",
            ),
            // Its text is the handler's own, and is in no log of ours.
            Error::Failed { .. } => Self::new(
                ProblemKind::Internal,
                "an earlier request with this key failed; this request did nothing",
            ),
            _ => {
                crate::telemetry::internal(error);
                Self::new(
                    ProblemKind::Internal,
                    "the server is not set up as it should be; its log says more",
                )
            }
        }
    }
}

/// Whoever handles the request rolls its transaction back.
fn not_recorded() -> Problem {
    Problem::new(
        ProblemKind::StoreUnavailable,
        "this request could not be recorded, so what it did is undone; send the same request with the same key again",
    )
    .with_retry_after(SOON)
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}
