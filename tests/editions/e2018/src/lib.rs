//! Proves that annotated functions compile without a warning in edition 2018, and
//! behave the same there.
#![deny(
    warnings,
    future_incompatible,
    keyword_idents,
    let_underscore,
    nonstandard_style,
    refining_impl_trait,
    rust_2018_idioms,
    rust_2021_compatibility,
    rust_2024_compatibility,
    unused
)]
#![cfg(test)]

#[path = "../../shapes.rs"]
mod shapes;

use idem::{idempotent, Error};

/// Words that later editions reserve, and closures that capture whole variables.
#[idempotent(key = (gen, order.id), payload = gen, ttl = "1h", clone = order)]
#[allow(keyword_idents, reason = "only this edition allows it")]
async fn reserved_later(gen: u32, order: &Order) -> Result<u32, Error> {
    let total = || order.total + gen;
    Ok(total())
}

#[derive(Clone)]
struct Order {
    id: u32,
    total: u32,
}

#[tokio::test]
async fn what_only_this_edition_has() {
    let order = Order { id: 1, total: 2 };
    let answer = shapes::engine()
        .await
        .scope(reserved_later(1, &order))
        .await;
    assert_eq!(answer, Ok(3));
}
