use idem::{Error, idempotent};

use std::cell::Cell;
use std::rc::Rc;

#[derive(Clone)]
struct Shop(Rc<Cell<u32>>);

impl Shop {
    #[idempotent(key = id, ttl = "24h", name = "shop.charge", clone = self)]
    async fn charge(&self, id: u32) -> Result<u32, Error> {
        Ok(self.0.get() + id)
    }
}

fn main() {}
