#![deny(unused_assignments)]
#![allow(dead_code)]

use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, mut total: u32) -> Result<u32, Error> {
    println!("{total}");
    total = id;
    Ok(id)
}

fn main() {}
