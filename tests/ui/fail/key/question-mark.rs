use idem::{Error, idempotent};

#[idempotent(key = (id, text.parse::<u32>()?), ttl = "24h")]
async fn charge(id: u32, text: String) -> Result<u32, Error> {
    let _ = text;
    Ok(id)
}

fn main() {}
