//! A server over TCP, and a client that looks closely.

use std::future::IntoFuture as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use idem::http::{IdempotencyLayer, LayerBuilder, Scoped};
use idem::store::{PostgresStore, SqliteStore};
use idem::{Clock as _, Engine, EngineBuilder, Stats, SystemClock};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::canary::{KEY, has_canary};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Sqlite,
    Postgres,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Counts what handlers did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects(Arc<AtomicUsize>);

impl Effects {
    pub(crate) fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Who sends a request, as an authentication would put it into extensions.
#[derive(Clone, Debug)]
pub(crate) struct Tenant(pub(crate) String);

async fn authenticate(mut request: Request, next: Next) -> Response {
    let tenant = request.headers().get("x-tenant");
    if let Some(tenant) = tenant.and_then(|value| value.to_str().ok()) {
        let tenant = Tenant(tenant.to_owned());
        request.extensions_mut().insert(tenant);
    }
    next.run(request).await
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) store: StoreKind,
    pub(crate) protocol: Protocol,
    pub(crate) effects: Effects,
    pub(crate) namespace: String,
    folder: tempfile::TempDir,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test is told where its server is"
)]
pub(crate) fn postgres_url() -> String {
    std::env::var("IDEM_TEST_POSTGRES_URL").expect("eval \"$(scripts/stores up postgres)\"")
}

/// Where the records of a trial are, in words that a command line takes.
pub(crate) fn address(store: StoreKind, folder: &std::path::Path) -> String {
    match store {
        StoreKind::Sqlite => folder.join("store.db").display().to_string(),
        StoreKind::Postgres => postgres_url(),
    }
}

pub(crate) async fn open(store: StoreKind, address: &str) -> EngineBuilder {
    match store {
        StoreKind::Sqlite => Engine::builder(SqliteStore::open(address).await.unwrap()),
        StoreKind::Postgres => {
            let store = PostgresStore::connect(address).await.unwrap();
            store.migrate().await.unwrap();
            Engine::builder(store)
        }
    }
}

impl World {
    pub(crate) async fn start(store: StoreKind, protocol: Protocol) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Trials share the server's database, but no record.
        let namespace = folder.path().file_name().unwrap().to_str().unwrap();
        let namespace = namespace.trim_start_matches('.').to_owned();
        let builder = open(store, &address(store, folder.path())).await;
        let engine = builder.namespace(&*namespace).build().await.unwrap();
        Self {
            engine,
            store,
            protocol,
            effects: Effects::default(),
            namespace,
            folder,
        }
    }

    pub(crate) fn address(&self) -> String {
        address(self.store, self.folder.path())
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// A layer as most use it.
    pub(crate) fn builder(&self) -> LayerBuilder<Scoped> {
        IdempotencyLayer::builder(&self.engine).scope(|parts| {
            let tenant = parts.extensions.get::<Tenant>()?;
            Some(tenant.0.clone())
        })
    }

    pub(crate) fn layer(&self) -> IdempotencyLayer {
        self.builder().build().unwrap()
    }

    /// Serves an application behind the authentication.
    pub(crate) async fn serve(&self, app: Router) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = app.layer(from_fn(authenticate));
        tokio::spawn(axum::serve(listener, app).into_future());
        Client::new(address, self.protocol)
    }

    /// Waits until nothing runs any more.
    pub(crate) async fn idle(&self) {
        until(|| self.engine.stats() == Stats::default()).await;
    }
}

/// Gives way to other tasks until something holds.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let started = SystemClock.monotonic();
    while !holds() {
        assert!(
            SystemClock.monotonic() - started < Duration::from_secs(20),
            "it does not come true"
        );
        tokio::task::yield_now().await;
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    http: reqwest::Client,
    protocol: Protocol,
}

/// One request, to be sent once or often.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Ask {
    /// A POST of tenant `a` with a key.
    pub(crate) fn new(path: &str, key: &str) -> Self {
        Self::bare(path)
            .header("idempotency-key", format!("{KEY}-{key}"))
            .header("x-tenant", "a")
    }

    /// A POST without key and tenant.
    pub(crate) fn bare(path: &str) -> Self {
        Self {
            method: Method::POST,
            path: path.to_owned(),
            headers: Vec::new(),
            body: b"{\"amount\":4200}".to_vec(),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn tenant(mut self, tenant: &str) -> Self {
        self.headers.retain(|(name, _)| *name != "x-tenant");
        self.header("x-tenant", tenant)
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }
}

/// A response as its client sees it, but for the time of day.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Reads a problem, which has a status and a type, and is one by its form.
    pub(crate) fn problem(&self, status: u16, name: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem["type"], format!("urn:idem:problem:{name}"));
        assert_eq!(problem["status"], status);
        assert!(
            problem["title"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        let retryable = problem["retryable"].as_bool().unwrap();
        assert_eq!(
            self.headers.contains_key("retry-after"),
            retryable,
            "{problem}"
        );
        problem
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, protocol: Protocol) -> Self {
        let builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none());
        let http = match protocol {
            Protocol::Http1 => builder.http1_only(),
            Protocol::Http2 => builder.http2_prior_knowledge(),
        };
        Self {
            address,
            http: http.build().unwrap(),
            protocol,
        }
    }

    fn request(&self, ask: &Ask) -> reqwest::RequestBuilder {
        let url = format!("http://{}{}", self.address, ask.path);
        let mut request = self.http.request(ask.method.clone(), url);
        for (name, value) in &ask.headers {
            request = request.header(*name, &**value);
        }
        request.body(ask.body.clone())
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&self, ask: &Ask) -> Answer {
        self.try_send(ask).await.unwrap()
    }

    pub(crate) async fn try_send(&self, ask: &Ask) -> Result<Answer, reqwest::Error> {
        let response = self.open(ask).await?;
        let mut headers = response.headers().clone();
        headers.remove("date");
        let answer = Answer {
            status: response.status().as_u16(),
            headers,
            body: response.bytes().await?.to_vec(),
        };
        // No answer of any kind shows a key.
        assert!(!has_canary(&answer.text()), "{}", answer.text());
        assert!(!has_canary(&format!("{:?}", answer.headers)));
        Ok(answer)
    }

    /// Sends a request and leaves the body of the answer to be read.
    pub(crate) async fn open(&self, ask: &Ask) -> Result<reqwest::Response, reqwest::Error> {
        let response = self.request(ask).send().await?;
        let expected = match self.protocol {
            Protocol::Http1 => axum::http::Version::HTTP_11,
            Protocol::Http2 => axum::http::Version::HTTP_2,
        };
        assert_eq!(response.version(), expected);
        Ok(response)
    }
}
