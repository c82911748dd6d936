use idem::{Error, idempotent};

fn wrap(_: String) -> Error {
    Error::NoEngine
}

#[idempotent(key = id, ttl = "24h", map_err = wrap)]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
