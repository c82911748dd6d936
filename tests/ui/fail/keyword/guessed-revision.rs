use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", revision = revision)]
async fn charge(id: u32, revision: u64) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
