use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", clone = note, on_cancel = abandon)]
async fn charge(id: u32, note: &str) -> Result<u32, Error> {
    let _ = note;
    Ok(id)
}

fn main() {}
