use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", clone = note)]
async fn charge(id: u32, note: Option<&str>) -> Result<u32, Error> {
    let _ = note;
    Ok(id)
}

fn main() {}
