use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, __idem_body: u32) -> Result<u32, Error> {
    Ok(id + __idem_body)
}

fn main() {}
