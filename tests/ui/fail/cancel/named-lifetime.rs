use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge<'a>(id: u32, note: Option<&'a str>) -> Result<u32, Error> {
    let _ = note;
    Ok(id)
}

fn main() {}
