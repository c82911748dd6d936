//! Proves that annotated functions compile without a warning in edition 2024, and
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

use idem::{Error, idempotent};

#[allow(clippy::manual_async_fn, reason = "the shape is the point")]
/// `if let` chains, async closures, and `Future` in the prelude.
#[idempotent(key = id, ttl = "1h")]
fn chains(id: Option<u32>) -> impl Future<Output = Result<u32, Error>> + Send {
    async move {
        let double = async |id: u32| id * 2;
        if let Some(id) = id
            && id > 0
        {
            return Ok(double(id).await);
        }
        Ok(0)
    }
}

/// Everything is captured, unless it is said.
#[idempotent(key = id, ttl = "1h", on_cancel = abandon)]
fn captures<'a>(
    id: &'a str,
    _unused: &str,
) -> impl Future<Output = Result<usize, Error>> + use<'a> {
    async move { Ok(id.len()) }
}

#[tokio::test]
async fn what_this_edition_brought() {
    let engine = shapes::engine().await;
    assert_eq!(engine.scope(chains(Some(2))).await, Ok(4));
    assert_eq!(engine.scope(captures("abc", "")).await, Ok(3));
}
