use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, (name, size): (&str, u32)) -> Result<u32, Error> {
    let _ = name;
    Ok(id + size)
}

fn main() {}
