#![deny(warnings)]

use idem::{Error, idempotent};

/// Items, closures and macros inside of a body.
#[derive(Clone)]
struct Shop {
    fee: u32,
}

impl Shop {
    #[idempotent(key = id, ttl = "1h", name = "shop.inside", clone = self)]
    async fn inside(&self, id: u32) -> Result<u32, Error> {
        struct Inner(u32);
        impl Inner {
            fn value(&self) -> u32 {
                self.0
            }
        }
        fn nested(id: u32) -> u32 {
            id + 1
        }
        macro_rules! fee {
            ($shop:expr) => {
                $shop.fee
            };
        }
        let total = |extra: u32| self.fee + extra + fee!(self);
        let future = async { self.fee };
        let vector = vec![self.fee, id];
        println!("{} {}", self.fee, self::outside());
        Ok(nested(total(Inner(id).value())) + future.await + vector[0])
    }
}

fn outside() -> u32 {
    0
}

pub fn main() {
    drop(Shop { fee: 1 }.inside(1));
}
