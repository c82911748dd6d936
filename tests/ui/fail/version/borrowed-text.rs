use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", version = revision, on_cancel = abandon)]
async fn apply(id: u32, revision: &str) -> Result<u32, Error> {
    Ok(id + revision.len() as u32)
}

fn main() {}
