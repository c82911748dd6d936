use idem::{Error, idempotent};

async fn another(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, ttl = "24h")]
fn charge(id: u32) -> impl Future<Output = Result<u32, Error>> {
    another(id)
}

fn main() {}
