use idem::{Error, idempotent};

async fn another(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    another(id)
}

fn main() {}
