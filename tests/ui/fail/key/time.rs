use idem::{Error, idempotent};

mod clock {
    pub fn now() -> u64 {
        0
    }
}

#[idempotent(key = (id, clock::now()), ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
