use idem::{Error, idempotent};

#[idempotent(key = "daily report", ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
