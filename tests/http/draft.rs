//! What the draft says of one request and of two with one key.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, Method, StatusCode};
use axum::routing::{any, post};
use idem::http::Query;
use idem::{Clock as _, Error, OnInProgress, SystemClock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::canary::KEY;
use crate::world::{Ask, Client, Effects, World, until};

/// Answers with the number of the run and what it was sent.
fn counting(effects: &Effects) -> axum::routing::MethodRouter {
    let effects = effects.clone();
    any(move |request: Request| {
        let effects = effects.clone();
        async move {
            let body = axum::body::to_bytes(request.into_body(), usize::MAX).await;
            let body = String::from_utf8_lossy(&body.unwrap()).into_owned();
            (
                StatusCode::CREATED,
                format!("run {} of {body}", effects.add()),
            )
        }
    })
}

async fn serve(world: &World) -> Client {
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(world.layer());
    world.serve(app).await
}

pub(crate) async fn a_repeated_request_gets_the_first_answer(world: World) {
    let client = serve(&world).await;
    for method in [Method::POST, Method::PATCH] {
        let before = world.effects.count();
        let ask = Ask::new("/pay", method.as_str()).method(method);
        let first = client.send(&ask).await;
        assert_eq!(first.status, 201);
        assert_eq!(
            first.text(),
            format!("run {} of {{\"amount\":4200}}", before + 1)
        );
        for _ in 0..3 {
            assert_eq!(client.send(&ask).await, first);
        }
        assert_eq!(world.effects.count(), before + 1);
    }
}

/// One line: the values of the header, and the status and problem.
type Line = (&'static [&'static [u8]], u16, &'static str);

pub(crate) async fn every_line_of_the_draft_about_one_request(world: World) {
    const LINES: &[Line] = &[
        // The draft's own example, and the same key bare.
        (&[b"\"canary-4111-8e03978e-40d5-43dd\""], 201, "run 1"),
        (&[b"canary-4111-8e03978e-40d5-43dd"], 201, "run 1"),
        (&[b" \"canary-4111-8e03978e-40d5-43dd\" "], 201, "run 1"),
        (&[b"\"canary-4111-\\\"quoted\\\\\""], 201, "run 2"),
        (&[b"canary-4111:/+=._~"], 201, "run 3"),
        (&[], 400, "key-missing"),
        (&[b""], 400, "key-invalid"),
        (&[b"\"\""], 400, "key-invalid"),
        (&[b"canary-4111 x"], 400, "key-invalid"),
        (&[b"\"canary-4111 x\""], 400, "key-invalid"),
        (&[b"\"canary-4111"], 400, "key-invalid"),
        (&[b"\"canary-4111\\n\""], 400, "key-invalid"),
        (&[b"\"canary-4111\";p"], 400, "key-invalid"),
        (&[b"canary-4111,x"], 400, "key-invalid"),
        (&[b"canary-4111-\xc3\xa4"], 400, "key-invalid"),
        (&[b"canary-4111-1", b"canary-4111-2"], 400, "key-invalid"),
        (&[b"canary-4111-1", b"canary-4111-1"], 400, "key-invalid"),
    ];
    let client = serve(&world).await;
    let send = async |keys: &[&[u8]]| {
        let mut ask = Ask::bare("/pay").header("x-tenant", "a");
        for key in keys {
            ask = ask.header("idempotency-key", *key);
        }
        client.send(&ask).await
    };
    for (keys, status, expected) in LINES {
        let answer = send(keys).await;
        if *status == 201 {
            assert_eq!(answer.status, 201, "{keys:?}: {}", answer.text());
            assert!(
                answer.text().starts_with(expected),
                "{keys:?}: {}",
                answer.text()
            );
        } else {
            let problem = answer.problem(*status, expected);
            assert_eq!(problem["retryable"], false, "{keys:?}");
        }
    }
    let key = |length: usize| format!("{KEY}{}", "k".repeat(length - KEY.len())).into_bytes();
    assert_eq!(send(&[&key(255)]).await.status, 201);
    send(&[&key(256)]).await.problem(400, "key-invalid");
    assert_eq!(world.effects.count(), 4, "nothing of a refused request ran");
}

pub(crate) async fn another_request_with_the_key_is_refused_and_told_what_differs(world: World) {
    let client = serve(&world).await;
    let ask = Ask::new("/pay?a=1", "reused");
    let first = client.send(&ask).await;
    for (other, differs) in [
        (ask.clone().body("{\"amount\":9900}"), "body"),
        (ask.clone().body("{\"amount\":4200} "), "body"),
        (ask.clone().body(""), "body"),
        (Ask::new("/pay?a=2", "reused"), "query"),
    ] {
        let problem = client.send(&other).await.problem(422, "key-reused");
        assert_eq!(problem["retryable"], false);
        assert_eq!(problem["differs"], serde_json::json!([differs]));
    }
    assert_eq!(
        client.send(&ask).await,
        first,
        "the first is still answered"
    );
    assert_eq!(world.effects.count(), 1);
}

/// A handler that says when it has begun, and ends when it is told to.
fn gated(effects: &Effects, gate: &Arc<Notify>) -> axum::routing::MethodRouter {
    let (effects, gate) = (effects.clone(), Arc::clone(gate));
    post(move || {
        let (effects, gate) = (effects.clone(), Arc::clone(&gate));
        async move {
            let run = effects.add();
            gate.notified().await;
            format!("run {run}")
        }
    })
}

pub(crate) async fn a_request_that_comes_meanwhile_waits(world: World) {
    let gate = Arc::new(Notify::new());
    let app = Router::new()
        .route("/pay", gated(&world.effects, &gate))
        .layer(world.layer());
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "meanwhile");
    let send = || {
        let (client, ask) = (client.clone(), ask.clone());
        tokio::spawn(async move { client.send(&ask).await })
    };
    let first = send();
    until(|| world.effects.count() == 1).await;
    let second = send();
    until(|| world.engine.stats().waiters == 1).await;
    // Another request under the key is no retry, also now.
    let other = client.send(&ask.clone().body("another")).await;
    other.problem(422, "key-reused");
    gate.notify_one();
    let first = first.await.unwrap();
    assert_eq!((first.status, first.text()), (200, "run 1".to_owned()));
    assert_eq!(second.await.unwrap(), first);
    assert_eq!(world.effects.count(), 1);
}

pub(crate) async fn a_request_that_comes_meanwhile_is_refused(world: World) {
    for (name, choice) in [
        ("at once", OnInProgress::Reject),
        (
            "after a wait",
            OnInProgress::Wait(Duration::from_millis(50)),
        ),
    ] {
        let (gate, effects) = (Arc::new(Notify::new()), Effects::default());
        let layer = world.builder().on_in_progress(choice).name(name).build();
        let app = Router::new()
            .route("/pay", gated(&effects, &gate))
            .layer(layer.unwrap());
        let client = world.serve(app).await;
        let ask = Ask::new("/pay", "refused");
        let first = tokio::spawn({
            let (client, ask) = (client.clone(), ask.clone());
            async move { client.send(&ask).await }
        });
        until(|| effects.count() == 1).await;
        let second = client.send(&ask).await;
        let problem = second.problem(409, "in-progress");
        assert_eq!(problem["retryable"], true);
        let seconds: u64 = second.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=5).contains(&seconds), "{seconds}");
        gate.notify_one();
        let first = first.await.unwrap();
        assert_eq!(client.send(&ask).await, first);
        assert_eq!(effects.count(), 1);
    }
}

pub(crate) async fn by_default_it_waits_two_seconds(world: World) {
    let gate = Arc::new(Notify::new());
    let app = Router::new()
        .route("/pay", gated(&world.effects, &gate))
        .layer(world.layer());
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "seconds");
    let first = tokio::spawn({
        let (client, ask) = (client.clone(), ask.clone());
        async move { client.send(&ask).await }
    });
    until(|| world.effects.count() == 1).await;
    let started = SystemClock.monotonic();
    let second = client.send(&ask).await;
    let waited = SystemClock.monotonic() - started;
    second.problem(409, "in-progress");
    assert!(waited >= Duration::from_secs(2), "{waited:?}");
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    gate.notify_one();
    assert_eq!(first.await.unwrap().status, 200);
}

pub(crate) async fn the_key_is_forgotten_after_its_ttl(world: World) {
    let layer = world.builder().ttl(Duration::from_millis(1));
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(layer.build().unwrap());
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "forgotten");
    let first = client.send(&ask).await;
    while client.send(&ask).await == first {}
    assert!(world.effects.count() > 1);
}

pub(crate) async fn other_methods_pass_through(world: World) {
    let client = serve(&world).await;
    let methods = [
        Method::GET,
        Method::HEAD,
        Method::OPTIONS,
        Method::PUT,
        Method::DELETE,
    ];
    for method in &methods {
        // Also with a header that would be refused.
        let ask = Ask::new("/pay", "same").header("idempotency-key", "two, of them");
        for _ in 0..2 {
            assert_eq!(
                client
                    .send(&ask.clone().method(method.clone()))
                    .await
                    .status,
                201
            );
        }
    }
    assert_eq!(world.effects.count(), 2 * methods.len());
}

pub(crate) async fn without_a_key_where_it_is_optional(world: World) {
    let layer = world
        .builder()
        .required_if(|parts| parts.uri.path() == "/pay");
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .route("/look", counting(&world.effects))
        .layer(layer.build().unwrap());
    let client = world.serve(app).await;
    client
        .send(&Ask::bare("/pay"))
        .await
        .problem(400, "key-missing");
    for run in 1..=2 {
        let answer = client.send(&Ask::bare("/look")).await;
        assert_eq!(answer.text(), format!("run {run} of {{\"amount\":4200}}"));
    }
    let ask = Ask::new("/look", "optional");
    assert_eq!(client.send(&ask).await, client.send(&ask).await);
    assert_eq!(world.effects.count(), 3);
}

pub(crate) async fn a_large_request_reserves_nothing(world: World) {
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(world.builder().body_limit(100).build().unwrap());
    let client = world.serve(app).await;
    let ask = Ask::new("/pay", "large");
    let problem = client.send(&ask.clone().body(vec![b'x'; 101])).await;
    assert_eq!(problem.problem(413, "body-too-large")["retryable"], false);
    // The key is as good as new, and what fits arrives whole.
    let body = "y".repeat(100);
    let answer = client.send(&ask.body(body.clone())).await;
    assert_eq!(answer.text(), format!("run 1 of {body}"));
    if world.protocol == crate::world::Protocol::Http1 {
        // Without a length, too: it is found while reading.
        let chunked = |key: &str, piece: &str| {
            format!(
                "POST /pay HTTP/1.1\r\nhost: x\r\nx-tenant: a\r\nconnection: close\r\nidempotency-key: {KEY}-{key}\r\n\
                 transfer-encoding: chunked\r\n\r\n3c\r\n{piece}\r\n28\r\n{}\r\n{}0\r\n\r\n",
                "b".repeat(40),
                if key == "over" { "1\r\nc\r\n" } else { "" },
            )
        };
        let over = raw(&client, &chunked("over", &"a".repeat(60))).await;
        assert!(over.starts_with("HTTP/1.1 413"), "{over}");
        let within = raw(&client, &chunked("within", &"a".repeat(60))).await;
        assert!(
            within.contains("run 2 of aaa") && within.contains("abbb"),
            "{within}"
        );
    }
}

/// Sends text as it is, and reads until the server closes.
async fn raw(client: &Client, request: &str) -> String {
    let mut socket = TcpStream::connect(client.address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.ok();
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) async fn a_client_that_asks_first_is_not_asked_for_the_body_of_a_bad_request(
    world: World,
) {
    let client = serve(&world).await;
    let head = |key: &str, length: usize| {
        format!(
            "POST /pay HTTP/1.1\r\nhost: x\r\nx-tenant: a\r\nidempotency-key: {KEY}{key}\r\n\
             content-length: {length}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n"
        )
    };
    // Refused by its head alone.
    let answer = raw(&client, &head(" x", 4)).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let answer = raw(&client, &head("-long", 1024 * 1024 + 1)).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    // A good one is asked to go on.
    let mut socket = TcpStream::connect(client.address).await.unwrap();
    socket.write_all(head("-good", 4).as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    socket.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    socket.write_all(b"body").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("run 1 of body"), "{answer}");
}

pub(crate) async fn chosen_query_and_headers(world: World) {
    let layer = world
        .builder()
        .query(Query::Except(vec!["trace".to_owned()]))
        .compare_header(HeaderName::from_static("x-version"));
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(layer.build().unwrap());
    let client = world.serve(app).await;
    let ask = |query: &str| Ask::new(&format!("/pay?{query}"), "chosen");
    let first = client
        .send(&ask("a=1&trace=1").header("x-version", "7"))
        .await;
    assert_eq!(first.status, 201);
    let same = client
        .send(&ask("trace=2&a=1").header("x-version", "7"))
        .await;
    assert_eq!(same, first);
    for (other, differs) in [
        (ask("a=2").header("x-version", "7"), "query"),
        (ask("a=1").header("x-version", "8"), "header x-version"),
        (ask("a=1"), "header x-version"),
    ] {
        let problem = client.send(&other).await.problem(422, "key-reused");
        assert_eq!(problem["differs"], serde_json::json!([differs]));
    }
}

pub(crate) async fn a_shut_down_server_says_so(world: World) {
    let client = serve(&world).await;
    world.engine.shutdown(Duration::from_secs(5)).await.unwrap();
    let answer = client.send(&Ask::new("/pay", "late")).await;
    assert_eq!(answer.problem(503, "shutting-down")["retryable"], true);
    assert_eq!(world.effects.count(), 0);
}

pub(crate) async fn problems_can_be_replaced(world: World) {
    let layer = world
        .builder()
        .problem_base("https://shop.example/problems/")
        .problems(|problem| {
            let text = format!("{} {}", problem.type_uri(), problem.retryable);
            let mut response = axum::http::Response::new(idem::http::Body::from(text));
            *response.status_mut() = StatusCode::IM_A_TEAPOT;
            response
        });
    let app = Router::new()
        .route("/pay", counting(&world.effects))
        .layer(layer.build().unwrap());
    let client = world.serve(app).await;
    let answer = client.send(&Ask::bare("/pay")).await;
    assert_eq!(answer.status, 418);
    assert_eq!(
        answer.text(),
        "https://shop.example/problems/key-missing false"
    );
    // What no client has seen over TCP is a response all the same.
    let error = Error::Superseded;
    let response = idem::http::Problem::from(&error).to_response();
    assert_eq!(response.status(), 409);
    assert_eq!(response.headers()["retry-after"], "1");
}
