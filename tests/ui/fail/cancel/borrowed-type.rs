use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, note: std::borrow::Cow<'_, str>) -> Result<usize, Error> {
    Ok(note.len())
}

fn main() {}
