//! Bodies that are no recorded answer: too long, endless, slow, broken.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use http_body::Frame;
use idem::http::{BoxError, IdempotencyLayer};
use tokio::sync::mpsc;

use crate::world::{Ask, Client, World};

type Piece = Result<Bytes, BoxError>;

/// A body that gives what it is sent, and ends with its sender.
struct Pieces(mpsc::UnboundedReceiver<Piece>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// Serves a handler that answers with the body that `send` writes into.
async fn serve(
    world: &World,
    layer: IdempotencyLayer,
    kind: &'static str,
    send: impl Fn(mpsc::UnboundedSender<Piece>) + Clone + Send + Sync + 'static,
) -> Client {
    let effects = world.effects.clone();
    let handler = post(move || {
        effects.add();
        let (sender, receiver) = mpsc::unbounded_channel();
        send(sender);
        let body = Body::new(Pieces(receiver));
        async move { ([("content-type", kind)], Response::new(body)) }
    });
    world
        .serve(Router::new().route("/pay", handler).layer(layer))
        .await
}

async fn check_not_kept(world: &World, client: &Client, ask: &Ask, why: &str) {
    for _ in 0..2 {
        let problem = client.send(ask).await.problem(409, "not-replayable");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(why), "{detail}");
    }
    assert_eq!(world.effects.count(), 1);
}

pub(crate) async fn a_long_body_is_streamed_and_not_kept(world: World) {
    let client = serve(&world, world.layer(), "text/plain", |sender| {
        for _ in 0..300 {
            sender.send(Ok(Bytes::from(vec![b'x'; 10_000]))).ok();
        }
    })
    .await;
    let ask = Ask::new("/pay", "long");
    let first = client.send(&ask).await;
    assert_eq!(
        first.body.len(),
        3_000_000,
        "the first client gets all of it"
    );
    check_not_kept(&world, &client, &ask, "above the size limit").await;
}

pub(crate) async fn an_endless_body_is_streamed_and_not_kept(world: World) {
    let (keep, mut kept) = mpsc::unbounded_channel();
    let client = serve(&world, world.layer(), "text/event-stream", move |sender| {
        sender.send(Ok(Bytes::from_static(b"data: 1\n\n"))).ok();
        keep.send(sender).ok();
    })
    .await;
    let ask = Ask::new("/pay", "endless");
    // The first event comes although the stream has not ended.
    let mut first = client.open(&ask).await.unwrap();
    assert_eq!(&first.chunk().await.unwrap().unwrap()[..], b"data: 1\n\n");
    let sender = kept.recv().await.unwrap();
    sender.send(Ok(Bytes::from_static(b"data: 2\n\n"))).unwrap();
    assert_eq!(&first.chunk().await.unwrap().unwrap()[..], b"data: 2\n\n");
    check_not_kept(&world, &client, &ask, "a stream that did not end").await;
    drop(sender);
    assert_eq!(first.text().await.unwrap(), "");
}

pub(crate) async fn a_slow_body_is_streamed_and_not_kept(world: World) {
    let (keep, mut kept) = mpsc::unbounded_channel();
    let layer = world.builder().answer_time(Duration::from_millis(50));
    let client = serve(
        &world,
        layer.build().unwrap(),
        "text/plain",
        move |sender| {
            sender.send(Ok(Bytes::from_static(b"one "))).ok();
            sender.send(Ok(Bytes::from_static(b"two "))).ok();
            keep.send(sender).ok();
        },
    )
    .await;
    let ask = Ask::new("/pay", "slow");
    let first = client.open(&ask).await.unwrap();
    let sender = kept.recv().await.unwrap();
    check_not_kept(&world, &client, &ask, "a stream that did not end").await;
    sender.send(Ok(Bytes::from_static(b"three"))).unwrap();
    drop(sender);
    assert_eq!(first.text().await.unwrap(), "one two three");
}

pub(crate) async fn a_body_that_breaks_leaves_the_outcome_unknown(world: World) {
    let client = serve(&world, world.layer(), "text/plain", |sender| {
        sender.send(Ok(Bytes::from_static(b"half"))).ok();
        sender.send(Err("it broke".into())).ok();
    })
    .await;
    let ask = Ask::new("/pay", "breaks");
    // Whatever of it arrives, the client does not take it for the whole.
    client.try_send(&ask).await.unwrap_err();
    client.send(&ask).await.problem(409, "outcome-unknown");
    assert_eq!(world.effects.count(), 1);
}
