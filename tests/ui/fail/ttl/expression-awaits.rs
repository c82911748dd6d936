use idem::{Error, idempotent};

async fn lookup() -> std::time::Duration {
    std::time::Duration::from_secs(1)
}

#[idempotent(key = id, ttl = lookup().await)]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
