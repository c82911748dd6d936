use idem::{Error, idempotent};

struct Shop;

impl Shop {
    const FEE: u32 = 1;

    #[idempotent(key = id, ttl = "24h")]
    async fn charge(id: u32) -> Result<u32, Error> {
        Ok(id + Self::FEE)
    }
}

fn main() {}
