#![deny(warnings)]

use std::sync::Arc;

use idem::{Error, idempotent};

#[derive(Clone)]
struct Shop {
    number: u32,
}

impl Shop {
    const ONE: u32 = 1;

    #[idempotent(key = self.number, ttl = "1h", name = "shop.value")]
    async fn value(mut self) -> Result<u32, Error> {
        self.number += Self::ONE;
        Ok(self.number)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.shared")]
    async fn shared(self: Arc<Self>, id: u32) -> Result<u32, Error> {
        Ok(self.number + id)
    }

    #[idempotent(key = (note, self.number), ttl = "1h", name = "shop.cloned", clone = (self, note))]
    async fn cloned(&self, note: &str) -> Result<String, Error> {
        let number = || self.number;
        Ok(format!("{}{note}{}", number(), self.number))
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.make")]
    async fn make(id: u32) -> Result<u32, Error> {
        Ok(Self { number: id }.number)
    }
}

pub fn main() {
    let shop = Shop { number: 1 };
    drop(shop.cloned("a"));
    drop(Arc::new(shop.clone()).shared(1));
    drop(Shop::make(1));
    drop(shop.value());
}
