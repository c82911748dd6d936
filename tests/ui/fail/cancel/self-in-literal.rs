use idem::{Error, idempotent};

#[derive(Debug, Clone)]
struct Shop;

impl Shop {
    #[idempotent(key = id, ttl = "24h", name = "shop.charge", clone = self)]
    async fn charge(&self, id: u32) -> Result<String, Error> {
        Ok(format!("{self:?} {id}"))
    }
}

fn main() {}
