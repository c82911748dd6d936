use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    let __idem_call = id;
    Ok(__idem_call)
}

fn main() {}
