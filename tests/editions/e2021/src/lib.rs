//! Proves that annotated functions compile without a warning in edition 2021, and
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

/// Closures that capture single fields.
#[idempotent(key = order.0, ttl = "1h")]
async fn fields(order: (u32, String, String)) -> Result<usize, Error> {
    let (first, second) = (order.1, move || order.2.len());
    Ok(first.len() + second())
}

#[tokio::test]
async fn what_this_edition_brought() {
    let order = (1, "a".to_owned(), "bc".to_owned());
    let answer = shapes::engine().await.scope(fields(order)).await;
    assert_eq!(answer, Ok(3));
}
