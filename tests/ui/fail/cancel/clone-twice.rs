use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", clone = (note, note))]
async fn charge(id: u32, note: &str) -> Result<usize, Error> {
    Ok(note.len() + id as usize)
}

fn main() {}
