use idem::{Error, idempotent};

#[idempotent(kye = id, ttl = "24", tenant = id, on_error = stor, name = "a b")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
