#![deny(warnings)]

use std::time::Duration;

use idem::{Error, idempotent};

const DAY: Duration = Duration::from_secs(86_400);

#[idempotent(key = id, ttl = DAY)]
async fn constant(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, ttl = DAY * days)]
async fn computed(id: u32, days: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, ttl = forever,)]
async fn forever_and_a_comma(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(
    ttl = "1w2d3h4m5s6ms",
    key = id,
    lease = "100ms",
    max_run = "1h",
    on_in_progress = wait("1m30s"),
)]
async fn every_unit(id: u32) -> Result<u32, Error> {
    Ok(id)
}

pub fn main() {
    drop((
        constant(1),
        computed(1, 2),
        forever_and_a_comma(1),
        every_unit(1),
    ));
}
