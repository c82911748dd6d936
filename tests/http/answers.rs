//! A replay is the first answer, but for what belongs to one exchange.

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use idem::http::{IdempotencyLayer, Unrecorded};

use crate::world::{Ask, Client, World};

/// `gzip` of "exactly what was answered\n", with its time set to 0.
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0x4b, 0xad, 0x48, 0x4c, 0x2e, 0xa9,
    0x54, 0x28, 0xcf, 0x48, 0x2c, 0x51, 0x28, 0x4f, 0x2c, 0x56, 0x48, 0xcc, 0x2b, 0x2e, 0x4f, 0x2d,
    0x4a, 0x4d, 0xe1, 0x02, 0x00,
];

async fn serve(
    world: &World,
    layer: IdempotencyLayer,
    answer: impl Fn(usize) -> Response + Clone + Send + Sync + 'static,
) -> Client {
    let effects = world.effects.clone();
    let handler = post(move || {
        let (run, answer) = (effects.add(), answer.clone());
        async move { answer(run) }
    });
    world
        .serve(Router::new().route("/pay", handler).layer(layer))
        .await
}

fn headers(pairs: &[(&'static str, &'static [u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let value = HeaderValue::from_bytes(value).unwrap();
        headers.append(HeaderName::from_static(name), value);
    }
    headers
}

/// Every header of the list of what is recorded, some of them twice.
const KEPT: &[(&str, &[u8])] = &[
    ("location", b"/charges/1"),
    ("etag", b"W/\"1\""),
    ("link", b"</a>; rel=\"next\""),
    ("link", b"</b>; rel=\"prev\""),
    ("content-type", b"application/json"),
    ("content-encoding", b"gzip"),
    ("content-language", b"de"),
    ("content-disposition", b"attachment; filename=\"\xe4\""),
    ("cache-control", b"private"),
    ("vary", b"accept-encoding"),
    ("vary", b"origin"),
    ("retry-after", b"7"),
    ("last-modified", b"Tue, 01 Dec 2026 00:00:00 GMT"),
];

pub(crate) async fn a_full_answer_is_replayed_to_the_byte(world: World) {
    let client = serve(&world, world.layer(), |_| {
        (StatusCode::CREATED, headers(KEPT), GZIP).into_response()
    })
    .await;
    let ask = Ask::new("/pay", "full");
    let first = client.send(&ask).await;
    assert_eq!(first.status, 201);
    assert_eq!(first.body, GZIP);
    assert_eq!(first.headers.get_all("link").iter().count(), 2);
    assert_eq!(first.headers.len(), KEPT.len() + 1, "and the length");
    for _ in 0..2 {
        assert_eq!(client.send(&ask).await, first);
    }
    assert_eq!(world.effects.count(), 1);
}

/// What is never recorded. The first client gets it all the same.
const OWN: &[(&str, &[u8])] = &[
    ("set-cookie", b"session=1"),
    ("set-cookie", b"theme=dark"),
    ("authorization", b"Bearer 1"),
    ("www-authenticate", b"Basic"),
    ("proxy-authenticate", b"Basic"),
    ("x-request-id", b"1"),
    ("request-id", b"1"),
    ("x-correlation-id", b"1"),
    ("traceparent", b"00-1-1-00"),
    ("ratelimit-remaining", b"9"),
    ("x-ratelimit-remaining", b"9"),
    ("server-timing", b"db;dur=1"),
    ("x-own", b"1"),
];

pub(crate) async fn what_belongs_to_one_exchange_is_not_replayed(world: World) {
    let client = serve(&world, world.layer(), |_| {
        (StatusCode::OK, headers(OWN), headers(KEPT), GZIP).into_response()
    })
    .await;
    let ask = Ask::new("/pay", "own");
    let first = client.send(&ask).await;
    let replay = client.send(&ask).await;
    let mut expected = first.clone();
    for (name, _) in OWN {
        assert!(first.headers.contains_key(*name), "{name}");
        expected.headers.remove(*name);
    }
    assert_eq!(replay, expected);

    // A header of one's own can be added.
    let layer = world
        .builder()
        .name("kept")
        .keep_header(HeaderName::from_static("x-own"));
    let client = serve(&world, layer.build().unwrap(), |_| {
        headers(OWN).into_response()
    })
    .await;
    client.send(&ask).await;
    assert_eq!(client.send(&ask).await.header("x-own"), Some("1"));
}

pub(crate) async fn bodies_of_every_kind(world: World) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let bodies = [
        (StatusCode::OK, Vec::new()),
        (StatusCode::NO_CONTENT, Vec::new()),
        (StatusCode::OK, every_byte.clone()),
        (StatusCode::OK, every_byte.repeat(2_000)),
    ];
    for (at, (status, body)) in bodies.into_iter().enumerate() {
        let answer = body.clone();
        let layer = world.builder().name(format!("body {at}"));
        let client = serve(&world, layer.build().unwrap(), move |_| {
            (status, answer.clone()).into_response()
        })
        .await;
        let ask = Ask::new("/pay", "kinds");
        let first = client.send(&ask).await;
        assert_eq!((first.status, &first.body), (status.as_u16(), &body));
        assert_eq!(client.send(&ask).await, first);
        assert_eq!(world.effects.count(), at + 1);
    }
}

pub(crate) async fn marks_by_choice(world: World) {
    let layer = world.builder().mark_replays().no_store().build().unwrap();
    let client = serve(&world, layer, |run| format!("run {run}").into_response()).await;
    let ask = Ask::new("/pay", "marks");
    let first = client.send(&ask).await;
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(first.header("cache-control"), Some("no-store"));
    let replay = client.send(&ask).await;
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!(replay.header("cache-control"), Some("no-store"));
    assert_eq!(replay.body, first.body);
    let problem = client.send(&ask.body("another")).await;
    problem.problem(422, "key-reused");
    assert_eq!(problem.header("cache-control"), Some("no-store"));
    assert_eq!(problem.header("idempotent-replayed"), None);
}

pub(crate) async fn a_withheld_answer_is_not_kept(world: World) {
    let client = serve(&world, world.layer(), |run| {
        let mut response = format!("secret {run}").into_response();
        response.extensions_mut().insert(Unrecorded);
        response
    })
    .await;
    let ask = Ask::new("/pay", "withheld");
    assert_eq!(client.send(&ask).await.text(), "secret 1");
    let second = client.send(&ask).await;
    let problem = second.problem(409, "not-replayable");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("not to be kept")
    );
    assert_eq!(world.effects.count(), 1);
}
