//! Clients that hang up, and handlers that are cut off: one effect, and the
//! retry is told the truth.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tower_http::timeout::TimeoutLayer;

use crate::canary::KEY;
use crate::world::{Ask, Client, Protocol, World, until};

const BODY: &str = "{\"amount\":4200}";

/// A handler that ends when it is told to.
async fn serve(world: &World) -> (Client, Arc<Notify>) {
    let gate = Arc::new(Notify::new());
    let (effects, inside) = (world.effects.clone(), Arc::clone(&gate));
    let handler = post(move |_: Bytes| {
        let (effects, gate) = (effects.clone(), Arc::clone(&inside));
        async move {
            let run = effects.add();
            gate.notified().await;
            (StatusCode::CREATED, format!("run {run}"))
        }
    });
    let app = Router::new().route("/pay", handler).layer(world.layer());
    (world.serve(app).await, gate)
}

/// Sends the beginning of a request, and leaves the connection open.
async fn begin(client: &Client, key: &str, body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(client.address).await.unwrap();
    let head = format!(
        "POST /pay HTTP/1.1\r\nhost: x\r\nx-tenant: a\r\nidempotency-key: {KEY}-{key}\r\n\
         content-length: {}\r\n\r\n{body}",
        BODY.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

/// Checks that a retry runs what never ran.
async fn retry_runs(world: &World, client: &Client, gate: &Notify, key: &str) {
    gate.notify_one();
    let ask = Ask::new("/pay", key);
    let first = client.send(&ask).await;
    assert_eq!((first.status, first.text()), (201, "run 1".to_owned()));
    assert_eq!(client.send(&ask).await, first);
    assert_eq!(world.effects.count(), 1);
}

pub(crate) async fn after_the_headers(world: World) {
    let (client, gate) = serve(&world).await;
    drop(begin(&client, "headers", "").await);
    retry_runs(&world, &client, &gate, "headers").await;
}

pub(crate) async fn after_half_the_body(world: World) {
    let (client, gate) = serve(&world).await;
    drop(begin(&client, "half", &BODY[..7]).await);
    retry_runs(&world, &client, &gate, "half").await;
}

/// A client of this trial's protocol whose handler has begun, and that can be
/// made to hang up.
struct Leaving {
    socket: Option<TcpStream>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Leaving {
    async fn start(world: &World, client: &Client, key: &str) -> Self {
        if world.protocol == Protocol::Http1 {
            return Self {
                socket: Some(begin(client, key, BODY).await),
                task: None,
            };
        }
        let (client, ask) = (client.clone(), Ask::new("/pay", key));
        Self {
            socket: None,
            // Aborted, it resets its stream.
            task: Some(tokio::spawn(async move {
                client.try_send(&ask).await.ok();
            })),
        }
    }

    fn hang_up(self) {
        drop(self.socket);
        if let Some(task) = self.task {
            task.abort();
        }
    }
}

pub(crate) async fn after_the_body(world: World) {
    let (client, gate) = serve(&world).await;
    let first = Leaving::start(&world, &client, "body").await;
    until(|| world.effects.count() == 1).await;
    first.hang_up();
    // The handler has not noticed: it ends, and its answer is recorded.
    gate.notify_one();
    world.idle().await;
    let ask = Ask::new("/pay", "body");
    let replay = client.send(&ask).await;
    assert_eq!((replay.status, replay.text()), (201, "run 1".to_owned()));
    assert_eq!(client.send(&ask).await, replay);
    assert_eq!(world.effects.count(), 1);
}

pub(crate) async fn while_waiting(world: World) {
    let (client, gate) = serve(&world).await;
    let ask = Ask::new("/pay", "waiting");
    let first = tokio::spawn({
        let (client, ask) = (client.clone(), ask.clone());
        async move { client.send(&ask).await }
    });
    until(|| world.effects.count() == 1).await;
    let second = Leaving::start(&world, &client, "waiting").await;
    until(|| world.engine.stats().waiters == 1).await;
    second.hang_up();
    until(|| world.engine.stats().waiters == 0).await;
    gate.notify_one();
    let first = first.await.unwrap();
    assert_eq!((first.status, first.text()), (201, "run 1".to_owned()));
    assert_eq!(client.send(&ask).await, first);
    assert_eq!(world.effects.count(), 1);
}

pub(crate) async fn a_timeout_inside_leaves_the_outcome_unknown(world: World) {
    let effects = world.effects.clone();
    let handler = post(move || {
        effects.add();
        // Cut off between effect and answer.
        std::future::pending::<String>()
    });
    let timeout =
        TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, Duration::from_millis(50));
    let app = Router::new()
        .route("/pay", handler)
        .layer(timeout)
        .layer(world.layer());
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "timeout");
    assert_eq!(client.send(&ask).await.status, 408);
    for _ in 0..3 {
        client.send(&ask).await.problem(409, "outcome-unknown");
    }
    assert_eq!(world.effects.count(), 1);
}

pub(crate) async fn a_panic_leaves_the_outcome_unknown(world: World) {
    let effects = world.effects.clone();
    let handler = post(move || {
        let effects = effects.clone();
        async move {
            effects.add();
            std::panic::resume_unwind(Box::new("after the effect"));
            #[expect(unreachable_code, reason = "names the type")]
            String::new()
        }
    });
    let app = Router::new().route("/pay", handler).layer(world.layer());
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "panic");
    // As without the layer: the connection or the stream is cut.
    client.try_send(&ask).await.unwrap_err();
    client.send(&ask).await.problem(409, "outcome-unknown");
    assert_eq!(world.effects.count(), 1);
}
