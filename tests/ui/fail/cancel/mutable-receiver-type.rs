use idem::{Error, idempotent};

use std::pin::Pin;

struct Shop(u32);

impl Shop {
    #[idempotent(key = id, ttl = "24h", name = "shop.charge", on_cancel = abandon)]
    async fn charge(self: Pin<&mut Self>, id: u32) -> Result<u32, Error> {
        Ok(self.0 + id)
    }
}

fn main() {}
