//! One request: admitted, read, called through the engine, answered.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::Body as HttpBody;
use sha2::{Digest as _, Sha256};
use tower_service::Service;

use super::REPLAYED;
use super::body::{Body, BoxError, End, Reader};
use super::config::Config;
use super::flight::{ByStatus, Failure, Own, Slot, Stored, ToFailure, run};
use super::problem::Problem;
use super::response::Reply;
use crate::answer::Answer;
use crate::engine::call::Call;
use crate::engine::driver;
use crate::identity::hex;
use crate::outcome::{self, How, Outcome};
use crate::sync::{Arc, lock};

/// A service with idempotent requests; made by
/// [`IdempotencyLayer`](super::IdempotencyLayer).
///
/// Requests may have bodies of any kind, and so may the answers of the inner
/// service. The inner service is called with [`Body`], and clients get it.
#[derive(Clone)]
pub struct Idempotency<S> {
    config: Arc<Config>,
    inner: S,
}

impl<S> std::fmt::Debug for Idempotency<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Idempotency")
    }
}

impl<S> Idempotency<S> {
    pub(super) fn new(config: Arc<Config>, inner: S) -> Self {
        Self { config, inner }
    }
}

type Answered<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

impl<S, B, R> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Answered<S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.config.knobs.methods.contains(request.method()) {
            return pass(self.inner.call(request.map(Body::new)));
        }
        // The service that was polled ready is the one to call; the clone is
        // polled before the next request.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        Box::pin(serve(Arc::clone(&self.config), ready, request))
    }
}

/// Answers a request that needs no key.
fn pass<F, R, E>(answer: F) -> Answered<E>
where
    F: Future<Output = Result<Response<R>, E>> + Send + 'static,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    Box::pin(async move { Ok(answer.await?.map(Body::new)) })
}

async fn serve<S, B, R>(
    config: Arc<Config>,
    mut inner: S,
    request: Request<B>,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: HttpBody<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let call = match admit(&config, &parts) {
        Ok(Some(call)) => call,
        Ok(None) => {
            let request = Request::from_parts(parts, Body::new(body));
            return Ok(inner.call(request).await?.map(Body::new));
        }
        Err(problem) => return Ok(show(&config, *problem)),
    };
    // Nothing is reserved before the whole request is here.
    let (bytes, trailers, digest) = match read(body, config.knobs.body_limit).await {
        Ok(read) => read,
        Err(problem) => return Ok(show(&config, problem)),
    };
    let call = call.payload_element("body".into(), &digest);
    let request = Request::from_parts(parts, Body::whole(bytes, trailers));

    let slot = Slot::default();
    let body = run(Arc::clone(&config), inner, request, Arc::clone(&slot));
    let ops = <Result<Reply, Failure> as Answer<Stored, ByStatus, ToFailure>>::ops(
        ByStatus(Arc::clone(&config)),
        ToFailure,
    );
    let (answer, outcome) = outcome::observe(driver::detached(call, ops, body)).await;
    let outcome = outcome.unwrap_or(Outcome::refused(None));

    let own = lock(&slot).take().filter(|_| outcome.how == How::Executed);
    let response = match (own, answer) {
        (Some(Own::Error(error)), _) => return Err(error),
        // The first client gets its own answer, with all headers.
        (Some(Own::Response(response)), _) => *response,
        (None, Ok(reply)) => replay(&config, reply),
        (None, Err(Failure::Answered(reply))) => replay(&config, *reply),
        (None, Err(failure)) => {
            let mut problem = failure.problem();
            problem.record = problem.record.or(outcome.record).filter(|_| {
                // Where there is something for an operator to look at.
                problem.kind.is_about_a_record()
            });
            show(&config, problem)
        }
    };
    Ok(finish(&config, response, outcome))
}

/// Decides by its head whether a request takes part; none if it passes through.
fn admit(config: &Config, parts: &Parts) -> Result<Option<Call>, Box<Problem>> {
    let knobs = &config.knobs;
    let key = knobs
        .grammar
        .find(&parts.headers, &knobs.header)
        .map_err(|mistake| Box::new(Problem::key_invalid(mistake)))?;
    let Some(key) = key else {
        return if (knobs.required)(parts) {
            Err(Box::new(Problem::key_missing()))
        } else {
            crate::telemetry::unprotected(knobs.operation.clone());
            Ok(None)
        };
    };
    let uri = super::original_uri(parts);
    let mut call = Call::plain(knobs.operation.clone())
        .engine(&config.engine)
        .ttl(knobs.ttl)
        .key(&(parts.method.as_str(), uri.path(), key.as_str()));
    call.on_in_progress(knobs.on_in_progress);
    call.on_unknown(knobs.on_unknown);
    let mut call = (config.scope)(parts, call).ok_or_else(|| Box::new(Problem::scope_missing()))?;
    let query = knobs.query.select(uri.query().unwrap_or_default());
    call = call.payload_element("query".into(), &query);
    for name in &knobs.compared {
        let label = format!("header {name}");
        call = call.payload_element(label.into(), &values(&parts.headers, name));
    }
    Ok(Some(call))
}

/// All values of a header, of which one may be no text.
fn values(headers: &HeaderMap, name: &http::HeaderName) -> Vec<String> {
    headers
        .get_all(name)
        .iter()
        .map(|value| value.as_bytes().escape_ascii().to_string())
        .collect()
}

type ReadRequest = (Bytes, Option<HeaderMap>, String);

/// Reads the body of a request, and digests it on the way.
async fn read<B>(body: B, limit: usize) -> Result<ReadRequest, Problem>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut digest = Sha256::new();
    let mut reader = Reader::new(body, limit);
    match reader.read(|piece| digest.update(piece)).await {
        End::Whole(bytes, trailers) => Ok((bytes, trailers, hex(&digest.finalize()))),
        End::OverLimit => Err(Problem::body_too_large(limit)),
        End::Failed(_) => Err(Problem::body_unreadable()),
    }
}

fn replay(config: &Config, reply: Reply) -> Response<Body> {
    let mut response = reply.into_response();
    if config.knobs.mark_replays {
        let value = HeaderValue::from_static("true");
        response.headers_mut().insert(REPLAYED, value);
    }
    response
}

fn show(config: &Config, problem: Problem) -> Response<Body> {
    let problem = problem.base(config.knobs.problem_base.clone());
    let mut response = (config.knobs.show)(&problem);
    mark_no_store(config, &mut response);
    response
}

fn finish(config: &Config, mut response: Response<Body>, outcome: Outcome) -> Response<Body> {
    mark_no_store(config, &mut response);
    // For layers further out that count or log.
    response.extensions_mut().insert(outcome);
    response
}

fn mark_no_store(config: &Config, response: &mut Response<Body>) {
    if config.knobs.no_store {
        let value = HeaderValue::from_static("no-store");
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
}
