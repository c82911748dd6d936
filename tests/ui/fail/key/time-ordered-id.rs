use idem::{Error, idempotent};

struct Uuid;

impl Uuid {
    fn now_v7() -> u64 {
        7
    }
}

#[idempotent(key = Uuid::now_v7(), ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
