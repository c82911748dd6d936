use idem::Error;

#[idem::idempotent(key = id, ttl = "24h")]
#[idem::idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
