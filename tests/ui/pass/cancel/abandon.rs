#![deny(warnings)]

use idem::{Error, idempotent};

struct Shop(u32);

impl Shop {
    #[idempotent(key = id, ttl = "1h", name = "shop.borrow", on_cancel = abandon)]
    async fn borrow(&self, id: &str, mut note: &str) -> Result<String, Error> {
        let local = String::from("local");
        if self.0 > 3 {
            note = &local;
        }
        Ok(format!("{id}{note}"))
    }
}

fn assert_send(_: impl Send) {}

pub fn main() {
    assert_send(Shop(1).borrow("a", "b"));
}
