#![deny(unused_mut)]
#![allow(dead_code)]

use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, mut never_changed: u32) -> Result<u32, Error> {
    let mut inside = id;
    Ok(inside + never_changed)
}

fn plain_sibling(mut never_changed: u32) -> u32 {
    never_changed
}

fn main() {}
