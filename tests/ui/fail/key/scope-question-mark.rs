use idem::{Error, idempotent};

fn tenant(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, ttl = "24h", scope = tenant(id)?)]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
