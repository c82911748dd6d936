use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", version = parse(&revision)?)]
async fn apply(id: u32, revision: String) -> Result<u32, Error> {
    Ok(id)
}

fn parse(text: &str) -> Result<u64, Error> {
    Ok(text.len() as u64)
}

fn main() {}
