//! Calls of every kind, whose every value is a canary.

use std::fmt::{Debug, Display};

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use idem::http::{EngineLayer, IdempotencyKey, IdempotencyLayer, Json};
use idem::sqlx::{Connection as _, SqliteConnection};
use idem::{
    Disposition, Engine, Error, OnInProgress, OnUnknown, Secret, context, idempotent, on_error,
};
use serde::{Deserialize, Serialize};
use tower::ServiceExt as _;

use crate::DAY;

pub(crate) const KEY: &str = "canary-key-4111";
pub(crate) const SCOPE: &str = "canary-scope-5222";
pub(crate) const PAYLOAD: &str = "canary-payload-6333";
pub(crate) const LABEL: &str = "canary-label-7444";
pub(crate) const ANSWER: &str = "canary-answer-8555";
pub(crate) const TEXT: &str = "canary-text-9666";
pub(crate) const SECRET: &str = "canary-secret-1777";
pub(crate) const PANIC: &str = "canary-panic-2888";

/// Everything that the library showed by itself.
#[derive(Debug, Default)]
pub(crate) struct Shown(pub(crate) Vec<String>);

impl Shown {
    pub(crate) fn debug(&mut self, what: &impl Debug) {
        self.0.push(format!("{what:?}"));
    }

    fn error(&mut self, error: &(impl Debug + Display)) {
        self.0.push(format!("{error:?} {error}"));
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Fail {
    Own(String),
    Idem(Error),
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Self::Idem(error)
    }
}

impl Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(TEXT)
    }
}

impl IntoResponse for Fail {
    fn into_response(self) -> Response {
        match self {
            Self::Own(text) => (StatusCode::PAYMENT_REQUIRED, text).into_response(),
            Self::Idem(error) => error.into_response(),
        }
    }
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Answers,
    Fails,
    Panics,
    IsTooLong,
}

const ENDS: [End; 4] = [End::Answers, End::Fails, End::Panics, End::IsTooLong];

/// More than the engine keeps.
const LIMIT: usize = 2_000;

fn end(how: End) -> Result<String, Fail> {
    match how {
        End::Answers => Ok(ANSWER.to_owned()),
        End::Fails => Err(Fail::Own(TEXT.to_owned())),
        // Without a hook's message, which is the process's own.
        End::Panics => std::panic::resume_unwind(Box::new(PANIC)),
        End::IsTooLong => Ok(ANSWER.repeat(LIMIT / ANSWER.len() + 1)),
    }
}

pub(crate) fn secret() -> Secret {
    Secret::new(SECRET.as_bytes()).unwrap()
}

pub(crate) async fn everything(engine: &Engine, path: Option<&std::path::Path>) -> Shown {
    let mut shown = Shown::default();
    shown.debug(engine);
    shown.debug(&secret());
    for how in ENDS {
        for payload in [PAYLOAD, PAYLOAD, "canary-payload-6333-other"] {
            annotated(engine, how, payload, &mut shown).await;
            plain(engine, how, payload, &mut shown).await;
            message(engine, how, payload, &mut shown).await;
            request(engine, how, payload, &mut shown).await;
            handler(engine, payload, &mut shown).await;
        }
    }
    refused(engine, &mut shown).await;
    if let Some(path) = path {
        in_transaction(engine, path, &mut shown).await;
    }
    operators(engine, &mut shown).await;
    shown
}

/// Runs a future in a task, so that its panic ends there.
async fn apart<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    tokio::spawn(work).await.ok()
}

fn note(answer: Result<String, Fail>, shown: &mut Shown) {
    match answer {
        Err(Fail::Idem(error)) => shown.error(&error),
        // The caller's own.
        Ok(_) | Err(Fail::Own(_)) => {}
    }
}

#[idempotent(
    name = "canary.annotated", engine = engine, ttl = "1h", key = (key, how), scope = scope,
    payload = payload, label = label, on_error = classify(sort)
)]
async fn charge(
    engine: Engine,
    key: String,
    scope: String,
    payload: String,
    label: String,
    how: u8,
) -> Result<String, Fail> {
    let shown = format!("{:?}", context()?);
    assert!(!shown.contains("canary-"), "{shown}");
    let step = idem::step("look", async { Ok::<_, Fail>(ANSWER.to_owned()) }).await?;
    assert_eq!(step, ANSWER);
    end(ENDS[usize::from(how)])
}

fn sort(_: &Fail) -> Disposition {
    Disposition::Store
}

async fn annotated(engine: &Engine, how: End, payload: &str, shown: &mut Shown) {
    let at = ENDS.iter().position(|end| *end == how).unwrap();
    let call = charge(
        engine.clone(),
        KEY.to_owned(),
        SCOPE.to_owned(),
        payload.to_owned(),
        LABEL.to_owned(),
        u8::try_from(at).unwrap(),
    );
    if let Some((answer, outcome)) = apart(idem::observe(call)).await {
        shown.debug(&outcome);
        note(answer, shown);
    }
}

async fn plain(engine: &Engine, how: End, payload: &str, shown: &mut Shown) {
    let call = engine
        .call("canary.plain", &(KEY, format!("{how:?}")), DAY)
        .scope(SCOPE)
        .payload(payload)
        .label(LABEL)
        .version(&1_u64)
        .on_unknown(OnUnknown::Rerun)
        .on_error(on_error::StoreText);
    shown.debug(&call);
    // Its text is all that is kept of an error.
    #[derive(Debug)]
    struct Text(Option<Error>);
    impl From<Error> for Text {
        fn from(error: Error) -> Self {
            Self(Some(error))
        }
    }
    impl Display for Text {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(TEXT)
        }
    }
    let body = async move { end(how).map_err(|_| Text(None)) };
    if let Some((answer, outcome)) = apart(call.run_detailed(body)).await {
        shown.debug(&outcome);
        if let Err(Text(Some(error))) = answer
            && !matches!(error, Error::Failed { .. })
        {
            shown.error(&error);
        }
    }
}

async fn message(engine: &Engine, how: End, payload: &str, shown: &mut Shown) {
    let inbox = engine
        .inbox("canary.inbox")
        .scope(SCOPE)
        .max_attempts(3)
        .on_error(sort as fn(&Fail) -> Disposition);
    shown.debug(&inbox);
    let message = inbox.message(&(KEY, format!("{how:?}")));
    let message = message.payload(payload).label(LABEL).delivery(1);
    shown.debug(&message);
    let received = apart(message.receive(async move { end(how) })).await;
    match received {
        Some(idem::inbox::Received::Refused(error)) => shown.error(&error),
        Some(received) => shown.debug(&received.delivery()),
        None => {}
    }
}

async fn request(engine: &Engine, how: End, payload: &str, shown: &mut Shown) {
    let layer = IdempotencyLayer::builder(engine)
        .name("canary.http")
        .scope(|request| {
            request
                .headers
                .get("x-tenant")?
                .to_str()
                .ok()
                .map(str::to_owned)
        })
        .compare_header(axum::http::header::ACCEPT);
    shown.debug(&layer);
    let layer = layer.build().unwrap();
    shown.debug(&layer);
    let handle = move || async move { end(how).into_response_of() };
    let app = Router::new()
        .route("/canary-key-4111/pay", post(handle))
        .layer(layer);
    let request = Request::post(format!("/{KEY}/pay?{PAYLOAD}"))
        .header("idempotency-key", format!("{KEY}-{how:?}-and-long-enough"))
        .header("x-tenant", SCOPE)
        .header("accept", PAYLOAD)
        .body(Body::from(payload.to_owned()))
        .unwrap();
    shown_response(app, request, shown).await;
}

trait IntoResponseOf {
    fn into_response_of(self) -> Response;
}

impl IntoResponseOf for Result<String, Fail> {
    fn into_response_of(self) -> Response {
        match self {
            Ok(answer) => (StatusCode::CREATED, answer).into_response(),
            Err(_) => (StatusCode::BAD_GATEWAY, TEXT).into_response(),
        }
    }
}

#[derive(Deserialize)]
struct Order {
    amount: String,
}

#[idempotent(
    name = "canary.handler", key = key.scoped_to(&tenant), payload = order.digest(), ttl = "24h",
    codec = idem::http::Response, on_in_progress = reject
)]
async fn pay(
    State(_): State<()>,
    Extension(tenant): Extension<String>,
    key: IdempotencyKey,
    order: Json<Order>,
) -> Result<Response, Fail> {
    assert!(order.amount.starts_with(PAYLOAD));
    let shown = format!(
        "{key:?} {:?} {order:?} {:?}",
        key.scoped_to(&tenant),
        order.digest()
    );
    assert!(!shown.contains("canary-"), "{shown}");
    Ok((StatusCode::CREATED, ANSWER).into_response())
}

async fn handler(engine: &Engine, payload: &str, shown: &mut Shown) {
    let app = Router::new()
        .route("/pay", post(pay))
        .with_state(())
        .layer(Extension(SCOPE.to_owned()))
        .layer(EngineLayer::new(engine));
    let request = Request::post("/pay")
        .header("idempotency-key", format!("{KEY}-and-long-enough"))
        .header("content-type", "application/json")
        .body(Body::from(format!(r#"{{"amount":"{payload}"}}"#)))
        .unwrap();
    shown_response(app, request, shown).await;
}

/// A problem is the library's own text; another answer is the handler's.
async fn shown_response(app: Router, request: Request<Body>, shown: &mut Shown) {
    let Some(Ok(response)) = apart(app.oneshot(request)).await else {
        return;
    };
    shown.debug(&response.extensions().get::<idem::Outcome>());
    let problem = response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind == "application/problem+json");
    let body = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .unwrap();
    if problem {
        shown.0.push(String::from_utf8(body.to_vec()).unwrap());
    }
}

/// Calls that the engine refuses for what they ask.
async fn refused(engine: &Engine, shown: &mut Shown) {
    let body = || async { Ok::<_, Error>(ANSWER.to_owned()) };
    let unusable = std::collections::BTreeMap::from([(KEY, f64::NAN)]);
    let name = KEY.repeat(10);
    for call in [
        engine.call("canary.plain.refused", &(KEY, ""), DAY),
        engine
            .call("canary.plain.refused", &unusable, DAY)
            .scope(SCOPE),
        engine
            .call("canary.plain.refused", KEY, DAY)
            .payload(&(PAYLOAD, &unusable)),
        // No name: a value that was passed in its place.
        engine.call(name.clone(), KEY, DAY),
    ] {
        let (answer, outcome) = call.run_detailed(body()).await;
        shown.debug(&outcome);
        shown.error(&answer.unwrap_err());
    }
    let (start, started) = tokio::sync::oneshot::channel();
    let (open, gate) = tokio::sync::oneshot::channel::<()>();
    let running = engine.call("canary.running", KEY, DAY);
    let running = tokio::spawn(running.run(async move {
        start.send(()).ok();
        gate.await.ok();
        Ok::<_, Error>(ANSWER.to_owned())
    }));
    started.await.unwrap();
    shown.debug(engine);
    let reject = engine
        .call("canary.running", KEY, DAY)
        .on_in_progress(OnInProgress::Reject);
    shown.error(&reject.run(body()).await.unwrap_err());
    open.send(()).unwrap();
    running.await.unwrap().unwrap();
}

async fn in_transaction(engine: &Engine, path: &std::path::Path, shown: &mut Shown) {
    let url = format!("sqlite://{}", path.display());
    let mut conn = SqliteConnection::connect(&url).await.unwrap();
    for payload in [PAYLOAD, PAYLOAD, "canary-payload-6333-other"] {
        let mut tx = conn.begin_with("BEGIN IMMEDIATE").await.unwrap();
        let call = engine.call("canary.transaction", KEY, DAY).payload(payload);
        let call = call.scope(SCOPE).label(LABEL);
        let answer = call
            .in_transaction(&mut tx)
            .run(async |_| Ok(ANSWER.to_owned()))
            .await;
        tx.commit().await.unwrap();
        note(answer, shown);
    }
}

/// What operators are shown of a store.
async fn operators(engine: &Engine, shown: &mut Shown) {
    shown.debug(&engine.observe_store().await.unwrap());
    shown.debug(&engine.stats());
    engine.sweep().await.unwrap();
}
