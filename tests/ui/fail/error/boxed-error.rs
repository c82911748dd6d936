use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    Ok(id)
}

fn main() {}
