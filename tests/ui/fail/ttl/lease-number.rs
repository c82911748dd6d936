use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", lease = 30)]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
