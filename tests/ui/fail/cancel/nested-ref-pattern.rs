use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, (ref name, _): (String, u32)) -> Result<usize, Error> {
    Ok(name.len() + id as usize)
}

fn main() {}
