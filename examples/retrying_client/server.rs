//! The server: a handler that charges, one layer around it, and a network that loses answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use idem::http::IdempotencyLayer;
use idem::store::MemoryStore;
use idem::{Engine, OnInProgress};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::BoxError;

/// What goes wrong next, and what has happened.
#[derive(Default)]
struct Shop {
    lost_answers: AtomicU64,
    slow: AtomicU64,
    overloaded: AtomicU64,
    broken: AtomicU64,
    requests: AtomicU64,
    charges: AtomicU64,
}

pub(crate) struct Server {
    pub(crate) url: String,
    shop: Arc<Shop>,
}

impl Server {
    pub(crate) fn lose_answers(&self, count: u64) {
        self.shop.lost_answers.store(count, Ordering::SeqCst);
    }

    pub(crate) fn be_slow(&self) {
        self.shop.slow.store(1, Ordering::SeqCst);
    }

    pub(crate) fn overload(&self) {
        self.shop.overloaded.store(1, Ordering::SeqCst);
    }

    pub(crate) fn break_after_charge(&self) {
        self.shop.broken.store(1, Ordering::SeqCst);
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        (count(&self.shop.requests), count(&self.shop.charges))
    }
}

/// Whether a fault was set; takes one of it.
fn take(fault: &AtomicU64) -> bool {
    let left = |count: u64| count.checked_sub(1);
    fault
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left)
        .is_ok()
}

pub(crate) async fn start() -> Result<Server, BoxError> {
    // In a file or a database server, so that it outlives the process: see `checkout`.
    let engine = Engine::builder(MemoryStore::new())
        // How long a retry is told to wait at most; of a server that died, how long until it is
        // told the truth.
        .lease(Duration::from_secs(1))
        .build()
        .await?;
    let idempotency = IdempotencyLayer::builder(&engine)
        // This shop has one customer. Others write `.scope(|request| …)`.
        .unscoped()
        .on_in_progress(OnInProgress::Wait(Duration::from_millis(100)))
        .build()?;

    let shop = Arc::<Shop>::default();
    let app = Router::new()
        .route("/charges", post(charge))
        .layer(idempotency)
        // Further out, where rate limits and authentication belong, too.
        .layer(from_fn_with_state(Arc::clone(&shop), network))
        .with_state(Arc::clone(&shop));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/charges", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(Server { url, shop })
}

/// The handler: it knows nothing of keys.
async fn charge(State(shop): State<Arc<Shop>>) -> Response {
    let charge = shop.charges.fetch_add(1, Ordering::SeqCst) + 1;
    if take(&shop.slow) {
        // Longer than its client waits, which does not stop it.
        sleep(Duration::from_millis(600)).await;
    }
    if take(&shop.broken) {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    (StatusCode::CREATED, Json(json!({ "charge": charge }))).into_response()
}

/// What happens between client and service.
async fn network(State(shop): State<Arc<Shop>>, request: Request, next: Next) -> Response {
    shop.requests.fetch_add(1, Ordering::SeqCst);
    if take(&shop.overloaded) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let answer = next.run(request).await;
    if take(&shop.lost_answers) {
        // Done, and on its way lost: the client sees a connection that says nothing.
        std::future::pending::<()>().await;
    }
    answer
}
