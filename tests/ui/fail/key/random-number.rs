use idem::{Error, idempotent};

mod rand {
    pub fn random() -> u64 {
        4
    }
}

#[idempotent(key = rand::random(), ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
