use idem::{Error, idempotent};

struct Uuid;

impl Uuid {
    fn new_v4() -> u64 {
        4
    }
}

#[idempotent(key = Uuid::new_v4(), ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
