//! The payment provider: somebody else's service, as far as the shop is concerned.
//!
//! It keeps its charges in memory and, like real providers, makes one charge for each
//! `Idempotency-Key`. `POST /faults` makes it slow, or lets it lose its answers:
//!
//! - `delay_ms`: wait before charging
//! - `hold_response_ms`: wait after charging
//! - `drop_responses`: for the next n requests, charge, then cut the connection

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::charge::{Charge, Order};
use crate::{BoxError, stop_signal};

pub(crate) async fn run(addr: &str) -> Result<(), BoxError> {
    let app = Router::new()
        .route("/charges", post(charge).get(list))
        .route("/faults", post(set_faults))
        .route("/health", get(|| async { "ok" }))
        .with_state(Arc::<Mutex<Ledger>>::default());
    let listener = TcpListener::bind(addr).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(stop_signal())
        .await?;
    Ok(())
}

type Shared = State<Arc<Mutex<Ledger>>>;

#[derive(Default)]
struct Ledger {
    entries: Vec<Entry>,
    faults: Faults,
}

/// A charge, and how it came to be.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub(crate) charge: Charge,
    idempotency_key: Option<String>,
    /// How often this charge was asked for; all but the first were recognized as repetitions.
    pub(crate) requests: u64,
}

impl Ledger {
    /// Charges once for each key. `None`: the key was used for another order.
    fn charge(&mut self, order: Order, key: Option<String>) -> Option<Charge> {
        let known = self
            .entries
            .iter_mut()
            .find(|entry| key.is_some() && entry.idempotency_key == key);
        if let Some(entry) = known {
            entry.requests += 1;
            return (entry.charge.order == order).then(|| entry.charge.clone());
        }
        let id = format!("ch_{:06}", self.entries.len() + 1);
        let charge = Charge { id, order };
        self.entries.push(Entry {
            charge: charge.clone(),
            idempotency_key: key,
            requests: 1,
        });
        Some(charge)
    }
}

async fn charge(State(ledger): Shared, headers: HeaderMap, Json(order): Json<Order>) -> Response {
    if order.amount == 0 {
        return refuse(StatusCode::PAYMENT_REQUIRED, "there is nothing to pay");
    }
    let key = headers
        .get("Idempotency-Key")
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());

    // In a task of its own: a caller that hangs up does not stop a charge.
    let charging = tokio::spawn(async move {
        let delay = ledger.lock().await.faults.delay();
        sleep(delay).await;
        let mut ledger = ledger.lock().await;
        let charged = ledger.charge(order, key);
        (
            charged,
            ledger.faults.hold_response(),
            ledger.faults.take_drop(),
        )
    });
    let Ok((charged, hold, cut)) = charging.await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    sleep(hold).await;
    if cut {
        // Unwinding ends the task that serves this connection, which closes it before a byte of
        // the answer is out. Unlike `panic!`, this prints nothing.
        std::panic::resume_unwind(Box::new("answer lost on purpose"));
    }
    match charged {
        Some(charge) => (StatusCode::CREATED, Json(charge)).into_response(),
        None => refuse(
            StatusCode::UNPROCESSABLE_ENTITY,
            "this key was used for another order",
        ),
    }
}

fn refuse(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

#[derive(Deserialize)]
struct Filter {
    id: Option<String>,
    idempotency_key: Option<String>,
}

async fn list(State(ledger): Shared, Query(filter): Query<Filter>) -> Json<Vec<Entry>> {
    let mut entries = ledger.lock().await.entries.clone();
    if let Some(id) = filter.id {
        entries.retain(|entry| entry.charge.id == id);
    }
    if let Some(key) = filter.idempotency_key {
        entries.retain(|entry| entry.idempotency_key.as_ref() == Some(&key));
    }
    Json(entries)
}

/// What goes wrong; a field that a request does not give keeps its value.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Faults {
    delay_ms: Option<u64>,
    hold_response_ms: Option<u64>,
    drop_responses: Option<u64>,
}

async fn set_faults(State(ledger): Shared, Json(given): Json<Faults>) -> Json<Faults> {
    let faults = &mut ledger.lock().await.faults;
    faults.delay_ms = given.delay_ms.or(faults.delay_ms);
    faults.hold_response_ms = given.hold_response_ms.or(faults.hold_response_ms);
    faults.drop_responses = given.drop_responses.or(faults.drop_responses);
    Json(*faults)
}

impl Faults {
    fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms.unwrap_or_default())
    }

    fn hold_response(&self) -> Duration {
        Duration::from_millis(self.hold_response_ms.unwrap_or_default())
    }

    fn take_drop(&mut self) -> bool {
        let left = self.drop_responses.unwrap_or_default();
        self.drop_responses = Some(left.saturating_sub(1));
        left > 0
    }
}
