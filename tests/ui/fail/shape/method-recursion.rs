use idem::{Error, idempotent};

#[derive(Clone)]
struct Shop;

impl Shop {
    #[idempotent(key = id, ttl = "24h", name = "shop.charge", clone = self)]
    async fn charge(&self, id: u32) -> Result<u32, Error> {
        Box::pin(self.charge(id)).await
    }
}

fn main() {}
