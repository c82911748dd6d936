use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", max_run = "0s")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
