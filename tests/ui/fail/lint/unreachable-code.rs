#![deny(unreachable_code)]
#![allow(dead_code)]

use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    return Ok(id);
    println!("never");
}

fn main() {}
