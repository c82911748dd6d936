use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, total: &mut u32) -> Result<u32, Error> {
    *total += id;
    Ok(id)
}

fn main() {}
