use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, note: String) -> Result<String, Error> {
    drop(note);
    let _ = id;
    Ok(note)
}

fn main() {}
