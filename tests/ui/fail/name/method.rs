use idem::{Error, idempotent};

struct Shop;

impl Shop {
    #[idempotent(key = id, ttl = "24h")]
    async fn charge(self, id: u32) -> Result<u32, Error> {
        Ok(id)
    }
}

fn main() {}
