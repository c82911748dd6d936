//! The service function: the one place where money moves, and where `#[idempotent]` stands.
//!
//! It is plain domain code: it takes an order and returns a charge. `idem` records that answer, so
//! a retry on any server that shares the store gets the same charge without asking the gateway to
//! charge again. What belongs to HTTP is in `http.rs`.

use std::time::Duration;

use idem::http::ScopedKey;
use idem::{Disposition, Recovered, idempotent};
use serde::{Deserialize, Serialize};

use crate::gateway_client::Gateway;

/// What a customer wants to pay for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) order_id: String,
    /// In the smallest unit of the currency.
    pub(crate) amount: u64,
    pub(crate) currency: String,
}

/// The answer that is recorded, and that every retry gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) order: Order,
}

/// What the service needs beside the order. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Shop {
    pub(crate) gateway: Gateway,
    pub(crate) ttl: Duration,
}

/// Charges `order` once for each pair of customer and key, and answers every repetition with the
/// first charge.
#[idempotent(
    // Names the operation in the store; stays when the function moves or is renamed.
    name = "checkout.charge",
    // The client chose the key, so it means something only together with who the client is: it
    // is the customer's key that comes in here, see `http.rs`.
    key = key,
    // The same key with another order is a mistake of the client, and is refused.
    payload = (order.order_id, order.amount, order.currency),
    // What people find this charge by, should it ever be in doubt.
    label = order.order_id,
    ttl = shop.ttl,
    // A caller that arrives meanwhile waits this long for the answer. A little longer than lease
    // and grace (see `serve.rs`), so that one retry also outlasts a server that died.
    on_in_progress = wait("3s"),
    on_error = classify(ChargeError::disposition),
    on_unknown = recover(find_charge(&shop.gateway)),
    // Not written, as it is the default: a client that hangs up does not stop a charge.
    // on_cancel = finish,
)]
pub(crate) async fn charge(
    shop: Shop,
    key: ScopedKey<String>,
    order: Order,
) -> Result<Charge, ChargeError> {
    // The same in every attempt at this key, so the gateway, too, can tell a retry from an order.
    let provider_key = idem::context()?.downstream_key("charge");
    shop.gateway.charge(&order, &provider_key).await
}

/// Settles an attempt that ended without an answer (a crash, a lost reply) by asking the gateway
/// what became of it. Runs only then, inside the next attempt.
async fn find_charge(gateway: &Gateway) -> Result<Recovered<Charge>, ChargeError> {
    let provider_key = idem::context()?.downstream_key("charge");
    Ok(match gateway.find(&provider_key).await? {
        Some(charge) => Recovered::Done(charge),
        // Should the lost request reach the gateway yet, it finds its key used by the new one.
        None => Recovered::NotDone,
    })
}

/// Why there is no charge to show.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ChargeError {
    /// The gateway said no.
    Refused { reason: String },
    /// The gateway could not be reached: nothing was sent.
    Unreachable,
    /// The order was sent, and no answer came back.
    AnswerLost,
    /// `idem` has no answer to give: still running, another payload, store away, and so on.
    Idem(idem::Error),
}

impl ChargeError {
    /// What an error says about the money, and so what a retry may do.
    fn disposition(&self) -> Disposition {
        match self {
            // Final: a retry gets the same refusal, and must use a new key to try again.
            Self::Refused { .. } => Disposition::Store,
            // Certainly nothing happened: a retry runs again.
            Self::Unreachable => Disposition::Release,
            // Money may have moved: a retry asks `find_charge` before anything else.
            Self::AnswerLost | Self::Idem(_) => Disposition::Unknown,
        }
    }
}

impl From<idem::Error> for ChargeError {
    fn from(error: idem::Error) -> Self {
        Self::Idem(error)
    }
}
