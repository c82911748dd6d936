use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", name = "charge")]
async fn charge(id: u32, note: impl ToString + 'static) -> Result<String, Error> {
    Ok(format!("{id}{}", note.to_string()))
}

fn main() {}
