use idem::{Error, idempotent};

#[idempotent(key = _, ttl = "24h")]
async fn charge(_: u32) -> Result<u32, Error> {
    Ok(1)
}

fn main() {}
