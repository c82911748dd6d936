#![deny(unused_variables)]
#![allow(dead_code)]

use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, unused: u32, mut changed: u32, (left, _): (u32, u32)) -> Result<u32, Error> {
    let inside = 1;
    Ok(id)
}

fn plain_sibling(unused: u32) {}

fn main() {}
