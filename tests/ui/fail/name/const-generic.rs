use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge<const N: usize>(id: u32) -> Result<usize, Error> {
    Ok(N + id as usize)
}

fn main() {}
