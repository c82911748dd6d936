use idem::{Error, idempotent};

async fn lookup(id: u32) -> u32 {
    id
}

#[idempotent(key = id, ttl = "24h", payload = lookup(id).await)]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
