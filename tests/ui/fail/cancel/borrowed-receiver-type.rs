use idem::{Error, idempotent};

struct Shop(u32);

impl Shop {
    #[idempotent(key = id, ttl = "24h", name = "shop.charge")]
    async fn charge(self: &std::sync::Arc<Self>, id: u32) -> Result<u32, Error> {
        Ok(self.0 + id)
    }
}

fn main() {}
