use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", version = revision)]
async fn apply(id: u32, revision: String) -> Result<u32, Error> {
    Ok(id + revision.len() as u32)
}

fn main() {}
