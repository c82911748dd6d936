use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id.to_string())
}

fn main() {}
