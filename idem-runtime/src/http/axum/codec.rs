//! Answers as responses.

use axum::response::IntoResponse;

use crate::answer::Never;
use crate::codec::{Codec, CodecError, Kept};
use crate::http::flight::{self, Read};
use crate::http::policy::HeaderList;
use crate::http::response::Reply;
use crate::http::{ANSWER_TIME, Body};
use crate::record::TombstoneReason;

type Answer<K> = Result<axum::response::Response, K>;

/// The codec of a handler that returns `Result<Response, E>` with
/// `E: IntoResponse`: status, headers and body are recorded.
///
/// The first client, too, gets only what is recorded: headers by the layer's
/// list, without `Set-Cookie` and the like. An `Err` is recorded as the
/// response that it becomes, and is replayed as `Ok` of that response. Which
/// errors are recorded is said by `on_error`; a response in `Ok` is, whatever
/// its status.
///
/// A body that is too long, or that does not end within 10 s, goes to the first
/// client as it comes; later calls get
/// [`Error::NotReplayable`](crate::Error::NotReplayable).
///
/// ```
/// use axum::http::StatusCode;
/// use axum::response::{IntoResponse as _, Response};
/// use idem::http::IdempotencyKey;
///
/// #[idem::idempotent(
///     name = "pay",
///     key = key.scoped_to(&user),
///     ttl = "24h",
///     codec = idem::http::Response,
/// )]
/// async fn pay(user: String, key: IdempotencyKey) -> Result<Response, idem::Error> {
///     Ok((StatusCode::CREATED, [("location", "/payments/1")]).into_response())
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Response;

impl<K> Codec<axum::response::Response, K> for Response
where
    K: IntoResponse + Send,
{
    const ID: &'static str = "http/1";

    async fn encode(answer: Answer<K>, limit: usize) -> (Answer<K>, Kept) {
        let response = match answer {
            Ok(response) => response,
            Err(error) => error.into_response(),
        };
        let status = response.status();
        let headers = HeaderList::default().select(response.headers());
        let (own, read) = flight::record(response, limit, ANSWER_TIME).await;
        let kept = match read {
            Read::Whole(body, trailers) => Reply {
                headers,
                body,
                trailers: HeaderList::default().select(&trailers),
                ..Reply::bare(status, None)
            }
            .keep(limit),
            Read::Unkept(reason) => Kept::Nothing(reason),
            Read::Failed => Kept::Nothing(TombstoneReason::NotEncodable),
        };
        (Ok(own.map(axum::body::Body::new)), kept)
    }

    fn decode(bytes: &[u8]) -> Result<Answer<K>, CodecError> {
        let response = Reply::read(bytes)?.into_response();
        Ok(Ok(response.map(axum::body::Body::new)))
    }

    fn is_failure(answer: &axum::response::Response) -> bool {
        flight::is_failure(answer.status())
    }
}

impl IntoResponse for Never {
    fn into_response(self) -> axum::response::Response {
        match self {}
    }
}

impl IntoResponse for crate::http::Problem {
    fn into_response(self) -> axum::response::Response {
        self.to_response().map(axum::body::Body::new)
    }
}

impl From<Body> for axum::body::Body {
    fn from(body: Body) -> Self {
        Self::new(body)
    }
}
