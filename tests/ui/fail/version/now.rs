use std::time::SystemTime;

use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", version = SystemTime::now())]
async fn apply(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
