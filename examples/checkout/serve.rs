//! One checkout server: the engine, the routes, and a shutdown that loses no answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::routing::{get, post};
use axum::{Json, Router};
use idem::store::SqliteStore;
use idem::{Engine, Error};
use serde_json::json;
use tokio::net::TcpListener;

use crate::args::Serve;
use crate::charge::Shop;
use crate::gateway_client::Gateway;
use crate::{BoxError, http, stop_signal};

/// What a lapsed lease is given on top, for a holder that is only late.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) async fn run(options: Serve) -> Result<(), BoxError> {
    let path = options.store.strip_prefix("sqlite://");
    let store = SqliteStore::open(path.ok_or("--store takes sqlite://PATH")?).await?;
    let engine = Engine::builder(store)
        .namespace("checkout")
        .lease(options.lease)
        .grace(GRACE)
        .build()
        .await?;
    // From here on every annotated function of this process finds its engine.
    idem::install(engine.clone())?;

    let swept = Arc::new(AtomicU64::new(0));
    tokio::spawn(sweep(engine.clone(), options.ttl, Arc::clone(&swept)));

    let shop = Shop {
        gateway: Gateway::new(&options.gateway)?,
        ttl: options.ttl,
    };
    let health = move || async move {
        Json(json!({ "status": "ok", "swept": swept.load(Ordering::Relaxed) }))
    };
    let app = Router::new()
        .route("/checkout", post(http::checkout))
        .route("/charges/{id}", get(http::show))
        .with_state(shop)
        .route("/health", get(health));
    let listener = TcpListener::bind(&options.addr).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(stop_signal())
        .await?;

    // Charges whose clients have left go on in tasks of their own: give them time to be recorded.
    engine.shutdown(Duration::from_secs(25)).await?;
    Ok(())
}

/// Removes expired answers now and then. Any one server may do it for all.
async fn sweep(engine: Engine, ttl: Duration, swept: Arc<AtomicU64>) {
    let every = (ttl / 2).clamp(Duration::from_millis(500), Duration::from_secs(600));
    let mut ticks = tokio::time::interval(every);
    loop {
        ticks.tick().await;
        match engine.sweep().await {
            Ok(removed) => drop(swept.fetch_add(removed, Ordering::Relaxed)),
            Err(Error::ShuttingDown) => return,
            Err(error) => tracing::warn!(%error, "sweep failed; the next one will catch up"),
        }
    }
}
