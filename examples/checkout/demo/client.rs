//! A customer's client, which counts what it sends, and a look into the gateway's books.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::header::{self, HeaderMap};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::BoxError;
use crate::charge::{Charge, Order};
use crate::gateway::Entry;

/// One request, to be sent once or many times.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) key: String,
    pub(super) customer: &'static str,
    pub(super) order: Order,
}

impl Request {
    pub(super) fn new(order_id: &str, amount: u64) -> Self {
        Self {
            key: format!("key-of-{order_id}"),
            customer: "alice",
            order: Order {
                order_id: order_id.to_owned(),
                amount,
                currency: "EUR".to_owned(),
            },
        }
    }
}

/// A response as the client sees it. Two are equal if everything is, but the time of day.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Answer {
    /// The charge of a `201`.
    pub(super) fn charge(&self) -> Result<Charge, BoxError> {
        if self.status != 201 {
            return Err(format!("expected a charge, got {} {}", self.status, self.body).into());
        }
        Ok(serde_json::from_value(self.body.clone())?)
    }

    /// The last part of a problem's type.
    pub(super) fn problem(&self) -> Option<&str> {
        self.body["type"].as_str()?.rsplit(':').next()
    }

    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        seconds.parse().ok().map(Duration::from_secs)
    }
}

/// Clones share the count.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    gateway: String,
    sent: Arc<AtomicUsize>,
}

pub(super) fn http() -> Result<reqwest::Client, BoxError> {
    Ok(reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(15))
        .build()?)
}

impl Client {
    pub(super) fn new(gateway: &str) -> Result<Self, BoxError> {
        Ok(Self {
            http: http()?,
            gateway: gateway.to_owned(),
            sent: Arc::default(),
        })
    }

    /// How many checkout requests went out.
    pub(super) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// Sends `request` once to `server`.
    pub(super) async fn send(&self, server: &str, request: &Request) -> Result<Answer, BoxError> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let response = self
            .http
            .post(format!("{server}/checkout"))
            .header("Idempotency-Key", &request.key)
            .header("X-Customer", request.customer)
            .json(&request.order)
            .send()
            .await?;
        let mut headers = response.headers().clone();
        headers.remove(header::DATE);
        Ok(Answer {
            status: response.status().as_u16(),
            headers,
            body: response.json().await?,
        })
    }

    /// Sends `request` until there is an answer that does not ask to come again later.
    pub(super) async fn retry(&self, server: &str, request: &Request) -> Result<Answer, BoxError> {
        let patience = Instant::now() + Duration::from_secs(15);
        loop {
            let answer = self.send(server, request).await?;
            match answer.retry_after() {
                Some(wait) if Instant::now() + wait < patience => sleep(wait).await,
                _ => return Ok(answer),
            }
        }
    }

    /// Makes the gateway misbehave; without faults, makes it behave.
    pub(super) async fn set_faults(&self, faults: &[(&str, u64)]) -> Result<(), BoxError> {
        let mut body = json!({ "delay_ms": 0, "hold_response_ms": 0, "drop_responses": 0 });
        for (name, value) in faults {
            body[name] = json!(value);
        }
        let url = format!("{}/faults", self.gateway);
        self.http
            .post(url)
            .json(&body)
            .send()
            .await?
            .error_for_status()?;
        Ok(())
    }

    pub(super) async fn all_charges(&self) -> Result<Vec<Entry>, BoxError> {
        Ok(self
            .http
            .get(format!("{}/charges", self.gateway))
            .send()
            .await?
            .json()
            .await?)
    }

    /// The charges of one order. More than one is what this example is about.
    pub(super) async fn charges(&self, order_id: &str) -> Result<Vec<Entry>, BoxError> {
        let mut charges = self.all_charges().await?;
        charges.retain(|entry| entry.charge.order.order_id == order_id);
        Ok(charges)
    }

    /// How many expired answers `server` has removed.
    pub(super) async fn swept(&self, server: &str) -> Result<u64, BoxError> {
        let health: Value = self
            .http
            .get(format!("{server}/health"))
            .send()
            .await?
            .json()
            .await?;
        Ok(health["swept"].as_u64().unwrap_or_default())
    }
}

/// Looks again and again until `look` finds something, for at most `bound`.
pub(super) async fn eventually<T>(
    bound: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Option<T>, BoxError>,
) -> Result<T, BoxError> {
    let end = Instant::now() + bound;
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(format!("waited {bound:?} for {what}").into());
        }
        sleep(Duration::from_millis(20)).await;
    }
}
