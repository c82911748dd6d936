//! An annotated function, and the types that keep its callers from mistakes.

use idem::{Error, idempotent};
use serde::{Deserialize, Serialize};

/// What makes two calls the same order.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct OrderId(pub u64);

/// Not `Serialize`, on purpose: a card number is no part of a key, a payload or
/// an answer.
#[derive(Debug, Clone)]
pub struct CardNumber(pub String);

/// What was charged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    /// In the smallest unit of the currency.
    pub amount: u64,
}

/// Charges a card once for each order.
///
/// # Errors
/// Those of the engine.
#[idempotent(name = "payments.charge", key = order, payload = amount, ttl = "24h")]
pub async fn charge(order: OrderId, card: CardNumber, amount: u64) -> Result<Charge, Error> {
    let _ = (order, card);
    Ok(Charge { amount })
}
