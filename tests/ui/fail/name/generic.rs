use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge<T: Send + 'static>(id: u32, _extra: T) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
