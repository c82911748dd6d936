use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", version = revision, on_stale = skip)]
async fn charge(id: u32, revision: u64) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
