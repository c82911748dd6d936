use idem::{Error, idempotent};

#[idempotent(key = (id, 1), ttl = "24h", on_missing_key = run)]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
