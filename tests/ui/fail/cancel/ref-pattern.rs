use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, ref note: String) -> Result<usize, Error> {
    Ok(note.len())
}

fn main() {}
