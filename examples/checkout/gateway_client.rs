//! The shop's client of the payment gateway: two calls, and what their failures mean.

use std::time::Duration;

use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;

use crate::BoxError;
use crate::charge::{Charge, ChargeError, Order};

#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    http: Client,
    charges: Url,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Gateway {
    pub(crate) fn new(base: &str) -> Result<Self, BoxError> {
        let http = Client::builder()
            .no_proxy()
            .connect_timeout(Duration::from_secs(2))
            .timeout(Duration::from_secs(30))
            .build()?;
        let charges = Url::parse(&format!("{}/charges", base.trim_end_matches('/')))?;
        Ok(Self { http, charges })
    }

    /// Asks the gateway to charge. It does so once for each `provider_key`.
    pub(crate) async fn charge(
        &self,
        order: &Order,
        provider_key: &str,
    ) -> Result<Charge, ChargeError> {
        let response = self
            .http
            .post(self.charges.clone())
            .header("Idempotency-Key", provider_key)
            .json(order)
            .send()
            .await
            .map_err(not_answered)?;
        match response.status() {
            StatusCode::CREATED => read(response).await,
            // Only what is known to be a final no counts as one; anything else may have charged.
            StatusCode::PAYMENT_REQUIRED | StatusCode::UNPROCESSABLE_ENTITY => {
                let refusal: Refusal = read(response).await?;
                Err(ChargeError::Refused {
                    reason: refusal.error,
                })
            }
            _ => Err(ChargeError::AnswerLost),
        }
    }

    /// The charge that was made under `provider_key`, if there is one.
    pub(crate) async fn find(&self, provider_key: &str) -> Result<Option<Charge>, ChargeError> {
        self.look_up("idempotency_key", provider_key).await
    }

    /// The charge with this id.
    pub(crate) async fn get(&self, id: &str) -> Result<Option<Charge>, ChargeError> {
        self.look_up("id", id).await
    }

    async fn look_up(&self, field: &str, value: &str) -> Result<Option<Charge>, ChargeError> {
        let mut url = self.charges.clone();
        url.query_pairs_mut().append_pair(field, value);
        let response = self.http.get(url).send().await.map_err(not_answered)?;
        if response.status() != StatusCode::OK {
            return Err(ChargeError::AnswerLost);
        }
        let mut found: Vec<Charge> = read(response).await?;
        Ok(found.pop())
    }
}

async fn read<T: serde::de::DeserializeOwned>(response: Response) -> Result<T, ChargeError> {
    response.json().await.map_err(|_| ChargeError::AnswerLost)
}

/// A request that failed to connect was never sent. After that, nobody here can know.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn not_answered(error: reqwest::Error) -> ChargeError {
    if error.is_connect() {
        ChargeError::Unreachable
    } else {
        ChargeError::AnswerLost
    }
}
