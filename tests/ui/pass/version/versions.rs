#![deny(warnings)]

use std::time::SystemTime;

use idem::{Error, idempotent};

#[idempotent(key = id, version = revision, ttl = "7d")]
async fn number(id: u32, revision: u64) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, version = row.at, on_stale = error, ttl = "7d")]
async fn time(id: u32, row: Row) -> Result<u32, Error> {
    Ok(id + row.sequence)
}

#[idempotent(key = id, version = (row.at, row.sequence), on_stale = replay, ttl = forever)]
async fn pair(id: u32, row: Row) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, version = bytes, ttl = "7d", on_cancel = abandon)]
async fn borrowed(id: u32, bytes: &[u8; 16]) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = (a, b), version = ((*a, *b), [0; 12]), ttl = "7d", name = "nested", on_cancel = abandon)]
async fn nested(a: &u64, b: &i32) -> Result<u32, Error> {
    Ok(1)
}

struct Row {
    at: SystemTime,
    sequence: u32,
}

pub fn main() {
    let _ = (number, time, pair, borrowed, nested);
}
