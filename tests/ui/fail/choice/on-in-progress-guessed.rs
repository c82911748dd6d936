use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", on_in_progress = block)]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
