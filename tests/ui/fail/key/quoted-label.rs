use idem::{Error, idempotent};

#[idempotent(key = order, label = "tenant", ttl = "24h")]
async fn charge(tenant: String, order: u32) -> Result<u32, Error> {
    Ok(order + u32::try_from(tenant.len()).unwrap_or(0))
}

fn main() {}
