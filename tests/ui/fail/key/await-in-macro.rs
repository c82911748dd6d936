use idem::{Error, idempotent};

async fn lookup(id: u32) -> u32 {
    id
}

#[idempotent(key = format!("{}", lookup(id).await), ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
