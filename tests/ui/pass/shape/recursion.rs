#![deny(warnings)]

use idem::{Error, idempotent};

use std::pin::Pin;

#[idempotent(key = id, ttl = "1h")]
async fn down(id: u32) -> Result<u32, Error> {
    if id == 0 { Ok(0) } else { again(id - 1).await }
}

fn again(id: u32) -> Pin<Box<dyn Future<Output = Result<u32, Error>> + Send>> {
    Box::pin(down(id))
}

#[idempotent(key = id, ttl = "1h", on_cancel = abandon)]
async fn in_place(id: u32) -> Result<u32, Error> {
    if id == 0 {
        Ok(0)
    } else {
        Box::pin(in_place(id - 1)).await
    }
}

/// A parameter of the function's own name is no recursion.
#[idempotent(key = id, ttl = "1h")]
async fn apply(id: u32, apply: fn(u32) -> u32) -> Result<u32, Error> {
    Ok(apply(id))
}

pub fn main() {
    drop(down(1));
    drop(in_place(1));
    drop(apply(1, |id| id));
}
