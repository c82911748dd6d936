use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", on_error = store(text))]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
