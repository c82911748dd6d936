use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, note: impl ToString + Send + 'static) -> Result<String, Error> {
    Ok(format!("{id}{}", note.to_string()))
}

fn main() {}
