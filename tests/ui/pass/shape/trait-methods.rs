#![deny(warnings)]

use std::sync::Arc;

use idem::{Error, idempotent};

trait Charge {
    fn charge(self: Arc<Self>, id: u32) -> impl Future<Output = Result<u32, Error>> + Send;

    #[idempotent(key = (self.number(), id), ttl = "1h", name = "charge.twice", on_cancel = abandon)]
    async fn twice(&self, id: u32) -> Result<u32, Error>
    where
        Self: Sync,
    {
        Ok(self.number() + 2 * id)
    }

    fn number(&self) -> u32;
}

struct Shop(u32);

impl Charge for Shop {
    #[idempotent(key = id, ttl = "1h", name = "shop.charge")]
    async fn charge(self: Arc<Self>, id: u32) -> Result<u32, Error> {
        Ok(self.0 + id)
    }

    fn number(&self) -> u32 {
        self.0
    }
}

pub fn main() {
    drop(Arc::new(Shop(1)).charge(1));
    drop(Shop(1).twice(1));
}
