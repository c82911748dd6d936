use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "1h1h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
