use idem::{Error, idempotent};

struct Shop(u32);

impl Shop {
    #[idempotent(key = id, ttl = "24h", name = "shop.charge")]
    async fn charge(&mut self, id: u32) -> Result<u32, Error> {
        self.0 += id;
        Ok(self.0)
    }
}

fn main() {}
