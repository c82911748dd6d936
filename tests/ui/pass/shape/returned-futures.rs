#![deny(warnings)]

use std::pin::Pin;

use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "1h")]
fn bare(id: u32) -> impl Future<Output = Result<u32, Error>> + Send {
    async move { Ok(id) }
}

#[idempotent(key = id, ttl = "1h")]
fn boxed(id: u32) -> Pin<Box<dyn Future<Output = Result<u32, Error>> + Send>> {
    Box::pin(async move { Ok(id) })
}

pub fn main() {
    drop(bare(1));
    drop(boxed(1));
}
