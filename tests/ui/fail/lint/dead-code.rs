#![deny(dead_code)]

use idem::{Error, idempotent};

struct Shop(u32);

impl Shop {
    #[idempotent(key = id, ttl = "24h", name = "shop.charge")]
    async fn charge(self, id: u32) -> Result<u32, Error> {
        Ok(self.0 + id)
    }

    fn plain_sibling(&self) {}
}

#[idempotent(key = id, ttl = "24h")]
async fn free(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
