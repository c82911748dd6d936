#![deny(warnings)]
#![no_implicit_prelude]
#![allow(dead_code)]

use ::idem::{Error, idempotent};

mod core {}
mod std {}
struct Option;
struct Some;
struct Box;
struct Result;
struct Arc;

/// Parameters with names that an expansion might use.
#[idempotent(key = key, payload = (ttl, call), ttl = "1h")]
async fn charge(
    key: u32,
    ttl: u32,
    call: u32,
    mut ops: u32,
    body: u32,
) -> ::core::result::Result<u32, Error> {
    ops += key + ttl + call;
    ::core::result::Result::Ok(ops + body)
}

pub fn main() {
    ::core::mem::drop(charge(1, 2, 3, 4, 5));
}
