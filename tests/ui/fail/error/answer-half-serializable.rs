use idem::{Error, idempotent};

#[derive(serde::Serialize)]
struct Charge {
    id: u32,
}

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<Charge, Error> {
    Ok(Charge { id })
}

fn main() {}
