use idem::{Error, idempotent};

#[idempotent(key = id id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
