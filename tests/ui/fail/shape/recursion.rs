use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    if id == 0 { Ok(0) } else { Box::pin(charge(id - 1)).await }
}

fn main() {}
