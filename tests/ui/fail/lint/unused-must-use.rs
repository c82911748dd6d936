#![deny(unused_must_use)]
#![allow(dead_code)]

use idem::{Error, idempotent};

fn fallible() -> Result<u32, Error> {
    Ok(1)
}

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    fallible();
    Ok(id)
}

async fn plain_sibling() {
    charge(1);
    charge(2).await;
}

fn main() {}
