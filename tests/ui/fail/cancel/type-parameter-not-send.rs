use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", name = "charge")]
async fn charge<T: 'static>(id: u32, _extra: T) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
