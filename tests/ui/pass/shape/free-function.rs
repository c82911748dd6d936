#![deny(warnings)]

use idem::{Error, idempotent};

/// A derived name, a tuple key, a payload.
#[idempotent(key = (merchant, order), payload = (amount, amount + 1), ttl = "24h", label = order)]
async fn charge(merchant: String, order: u32, mut amount: u64) -> Result<String, Error> {
    amount += 1;
    if amount == 7 {
        return Ok(merchant);
    }
    helper(order).await
}

/// One expression on one line.
#[idempotent(key = id, ttl = forever)]
#[rustfmt::skip]
async fn helper(id: u32) -> Result<String, Error> { Ok(id.to_string()) }

pub fn main() {
    drop(charge("m".to_owned(), 1, 2));
}
