use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", on_stale = replay)]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
