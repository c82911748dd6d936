use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", version = std::time::SystemTime::now())]
async fn apply(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
