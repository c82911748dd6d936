use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "99999999999w")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
