//! The layer below hyper, on services that have nothing to do with axum.

use std::convert::Infallible;
use std::future::Ready;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use bytes::Bytes;
use http_body::Frame;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use idem::http::{Body, BoxError, IdempotencyLayer};
use tokio::net::TcpListener;
use tower::{Layer as _, Service, ServiceExt, service_fn};

use crate::world::{Ask, Client, Effects, World};

/// Serves a tower service with hyper alone.
async fn serve<S, B>(world: &World, service: S) -> Client
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + Sync,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(async move {
                let builder = auto::Builder::new(TokioExecutor::new());
                let served = builder.serve_connection(TokioIo::new(socket), service);
                served.await.ok();
            });
        }
    });
    Client::new(address, world.protocol)
}

fn unscoped(world: &World) -> IdempotencyLayer {
    IdempotencyLayer::builder(&world.engine)
        .unscoped()
        .build()
        .unwrap()
}

type Counted = Result<Response<Body>, Infallible>;

fn count(effects: &Effects, request: &Request<Body>) -> Ready<Counted> {
    let mut response = Response::new(Body::from(format!("run {}", effects.add())));
    *response.status_mut() = StatusCode::CREATED;
    assert_eq!(request.uri().path(), "/pay");
    std::future::ready(Ok(response))
}

pub(crate) async fn a_hyper_service_without_axum(world: World) {
    let effects = world.effects.clone();
    let service = service_fn(move |request: Request<Body>| count(&effects, &request));
    let client = serve(&world, unscoped(&world).layer(service)).await;
    let ask = Ask::new("/pay", "hyper");
    let first = client.send(&ask).await;
    assert_eq!((first.status, first.text()), (201, "run 1".to_owned()));
    assert_eq!(client.send(&ask).await, first);
    client
        .send(&ask.body("other"))
        .await
        .problem(422, "key-reused");
}

/// A service that refuses to be called without having been polled ready, as
/// one that holds a permit does.
#[derive(Default)]
struct Picky {
    ready: bool,
    effects: Effects,
}

impl Clone for Picky {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            effects: self.effects.clone(),
        }
    }
}

impl Service<Request<Body>> for Picky {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Counted>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called without being ready"
        );
        count(&self.effects, &request)
    }
}

pub(crate) async fn the_service_that_was_ready_is_called(world: World) {
    let picky = Picky {
        ready: false,
        effects: world.effects.clone(),
    };
    let mut service = unscoped(&world).layer(picky);
    for method in ["POST", "GET", "POST", "GET", "POST"] {
        let request = Request::builder()
            .method(method)
            .uri("/pay")
            .header("idempotency-key", "canary-4111")
            .body(Body::default())
            .unwrap();
        let response = ServiceExt::<Request<Body>>::ready(&mut service)
            .await
            .unwrap();
        assert_eq!(response.call(request).await.unwrap().status(), 201);
    }
    assert_eq!(world.effects.count(), 3, "one for the key, two for GET");
}

/// A body with trailers, read piece by piece.
struct Trailing(Vec<Frame<Bytes>>);

impl Trailing {
    fn new() -> Self {
        let mut trailers = HeaderMap::new();
        trailers.insert("etag", HeaderValue::from_static("\"1\""));
        trailers.insert("x-own", HeaderValue::from_static("1"));
        trailers.insert("x-request-id", HeaderValue::from_static("1"));
        let data = |piece| Frame::data(Bytes::from_static(piece));
        // Taken from the end.
        Self(vec![
            Frame::trailers(trailers),
            data(b"body"),
            data(b"the "),
        ])
    }
}

impl http_body::Body for Trailing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop().map(Ok))
    }
}

/// Reads a body: its pieces, and the names of its trailers.
async fn read(mut body: Body) -> (Vec<String>, Vec<String>) {
    let (mut pieces, mut names) = (Vec::new(), Vec::new());
    while let Some(frame) =
        std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await
    {
        match frame.unwrap().into_data() {
            Ok(piece) => pieces.push(String::from_utf8(piece.to_vec()).unwrap()),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap();
                names.extend(trailers.keys().map(|name| name.as_str().to_owned()));
            }
        }
    }
    names.sort();
    (pieces, names)
}

pub(crate) async fn trailers_are_kept_by_the_list(world: World) {
    let all = ["etag", "x-own", "x-request-id"];
    let layer = IdempotencyLayer::builder(&world.engine)
        .unscoped()
        .keep_header(HeaderName::from_static("x-own"));
    let service = layer
        .build()
        .unwrap()
        .layer(service_fn(async |request: Request<Body>| {
            // The request arrives as one piece, with its trailers.
            let (pieces, names) = read(request.into_body()).await;
            assert_eq!((pieces, names.len()), (vec!["the body".to_owned()], 3));
            Ok::<_, Infallible>(Response::new(Trailing::new()))
        }));
    for expected in [&all[..], &all[..2]] {
        let request = Request::post("/pay")
            .header("idempotency-key", "canary-4111")
            .body(Trailing::new());
        let response = service.clone().oneshot(request.unwrap()).await.unwrap();
        let (pieces, names) = read(response.into_body()).await;
        assert_eq!(pieces, ["the body"]);
        assert_eq!(names, expected);
    }
}

pub(crate) async fn an_error_of_the_service_goes_to_its_client(world: World) {
    let effects = world.effects.clone();
    let service = service_fn(move |_: Request<Body>| {
        effects.add();
        std::future::ready(Err::<Response<Body>, BoxError>(
            "the backend is gone".into(),
        ))
    });
    let client = serve(&world, unscoped(&world).layer(service)).await;
    let ask = Ask::new("/pay", "error");
    // hyper cuts the connection of a service that fails.
    client.try_send(&ask).await.unwrap_err();
    client.send(&ask).await.problem(409, "outcome-unknown");
    assert_eq!(world.effects.count(), 1);
}
