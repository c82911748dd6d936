//! The handler as the body of a call: what is recorded of its response, and
//! what its first client gets.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body::Body as HttpBody;
use tower_service::Service;

use super::Unrecorded;
use super::body::{Body, BoxError, End, Reader};
use super::config::Config;
use super::problem::{Problem, ProblemKind};
use super::response::Reply;
use crate::answer::{ErrorMapping, ErrorPolicy, Keep};
use crate::codec::{Codec, CodecError, Kept};
use crate::error::Error;
use crate::policy::Disposition;
use crate::record::TombstoneReason;
use crate::sync::{Arc, Mutex, lock};

/// What the first client gets, which is more than what is recorded.
pub(super) enum Own<E> {
    Response(Box<Response<Body>>),
    Error(E),
}

/// Where the handler's task leaves it for the client's, if that is still there.
pub(super) type Slot<E> = Arc<Mutex<Option<Own<E>>>>;

/// Why a call has no answer with a status below 400.
#[derive(Debug)]
pub(super) enum Failure {
    /// The handler answered with another status, or with one that is not kept.
    Answered(Box<Reply>),
    /// The handler's service failed, or the body of its answer did.
    Broken,
    /// The engine has no answer.
    Engine(Error),
}

impl Failure {
    pub(super) fn problem(&self) -> Problem {
        match self {
            Self::Engine(error) => Problem::from(error),
            // Only an attempt of this call's own ends so, and has left more.
            Self::Answered(_) | Self::Broken => Problem::new(
                ProblemKind::Internal,
                "the handler failed, and its effect may or may not have happened",
            ),
        }
    }
}

pub(super) struct ToFailure;

impl ErrorMapping<Failure> for ToFailure {
    fn map(&self, error: Error) -> Failure {
        Failure::Engine(error)
    }
}

/// Sorts failures by the status table.
pub(super) struct ByStatus(pub(super) Arc<Config>);

impl ErrorPolicy<Failure> for ByStatus {
    type Kept = Reply;

    fn sort(&self, failure: &Failure) -> Disposition {
        match failure {
            Failure::Answered(reply) => self.0.knobs.statuses.of(reply.status),
            Failure::Broken | Failure::Engine(_) => Disposition::Unknown,
        }
    }

    fn keep(&self, failure: Failure) -> Keep<Failure, Reply> {
        match failure {
            Failure::Answered(reply) => Keep::Whole(*reply),
            failure => Keep::Nothing(failure),
        }
    }

    fn restore<M: ErrorMapping<Failure>>(kept: Reply, _: &M) -> Failure {
        Failure::Answered(Box::new(kept))
    }
}

/// Stores replies; one with a status of 400 or above is an error.
pub(super) struct Stored;

impl Codec<Reply, Reply> for Stored {
    const ID: &'static str = "http/1";

    fn encode(
        answer: Result<Reply, Reply>,
        limit: usize,
    ) -> impl Future<Output = (Result<Reply, Reply>, Kept)> + Send {
        let (Ok(reply) | Err(reply)) = &answer;
        let kept = reply.keep(limit);
        std::future::ready((answer, kept))
    }

    fn decode(bytes: &[u8]) -> Result<Result<Reply, Reply>, CodecError> {
        let reply = Reply::read(bytes)?;
        Ok(if is_failure(reply.status) {
            Err(reply)
        } else {
            Ok(reply)
        })
    }
}

pub(super) fn is_failure(status: http::StatusCode) -> bool {
    status.as_u16() >= 400
}

/// Whether a body is one that goes on for as long as its client listens.
fn is_endless(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kind| {
            let kind = kind.trim_start().to_ascii_lowercase();
            ["text/event-stream", "multipart/x-mixed-replace"]
                .iter()
                .any(|endless| kind.starts_with(endless))
        })
}

/// Reads what of an answer can be recorded: its body in whole with trailers,
/// or why not. Returns the response for the first client beside it.
pub(super) async fn record<R>(
    response: Response<R>,
    limit: usize,
    time: std::time::Duration,
) -> (Response<Body>, Read)
where
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let (head, body) = response.into_parts();
    let unkept = if head.extensions.get::<Unrecorded>().is_some() {
        Some(TombstoneReason::Withheld)
    } else if is_endless(&head.headers) {
        Some(TombstoneReason::Streamed)
    } else {
        None
    };
    if let Some(reason) = unkept {
        return (
            Response::from_parts(head, Body::new(body)),
            Read::Unkept(reason),
        );
    }
    let mut reader = Reader::new(body, limit);
    let end = tokio::time::timeout(time, reader.read(|_| {})).await;
    let (body, read) = match end {
        Ok(End::Whole(bytes, trailers)) => (
            Body::whole(bytes.clone(), trailers.clone()),
            Read::Whole(bytes, trailers.unwrap_or_default()),
        ),
        Ok(End::OverLimit) => (reader.into_body(), Read::Unkept(TombstoneReason::TooLarge)),
        Err(_) => (reader.into_body(), Read::Unkept(TombstoneReason::Streamed)),
        Ok(End::Failed(error)) => (reader.into_failed(error), Read::Failed),
    };
    (Response::from_parts(head, body), read)
}

/// What was read of an answer's body.
pub(super) enum Read {
    Whole(Bytes, HeaderMap),
    /// It cannot be given back.
    Unkept(TombstoneReason),
    /// It ended early.
    Failed,
}

/// Runs the handler, in the attempt's task.
pub(super) async fn run<S, R>(
    config: Arc<Config>,
    mut inner: S,
    request: Request<Body>,
    slot: Slot<S::Error>,
) -> Result<Reply, Failure>
where
    S: Service<Request<Body>, Response = Response<R>>,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let response = match inner.call(request).await {
        Ok(response) => response,
        Err(error) => {
            *lock(&slot) = Some(Own::Error(error));
            return Err(Failure::Broken);
        }
    };
    drop(inner);
    let knobs = &config.knobs;
    let status = response.status();
    let (own, result) = if knobs.statuses.of(status) == Disposition::Store {
        let limit = config.engine.inner.limits.answer_limit;
        let headers = knobs.kept.select(response.headers());
        let (own, read) = record(response, limit, knobs.answer_time).await;
        let mut reply = Reply::bare(status, None);
        let result = match read {
            Read::Whole(body, trailers) => {
                reply.headers = headers;
                reply.body = body;
                reply.trailers = knobs.kept.select(&trailers);
                Ok(reply)
            }
            Read::Unkept(reason) => {
                reply.unkept = Some(reason);
                Ok(reply)
            }
            Read::Failed => Err(Failure::Broken),
        };
        let result = result.and_then(|reply| {
            if is_failure(status) {
                Err(Failure::Answered(Box::new(reply)))
            } else {
                Ok(reply)
            }
        });
        (own, result)
    } else {
        let reply = Reply::bare(status, None);
        (
            response.map(Body::new),
            Err(Failure::Answered(Box::new(reply))),
        )
    };
    *lock(&slot) = Some(Own::Response(Box::new(own)));
    result
}
