#![deny(warnings)]

use idem::{Error, idempotent};

macro_rules! chain {
    ($first:ident) => {
        #[idempotent(key = id, ttl = "1h")]
        async fn $first(id: u32) -> Result<u32, Error> {
            Ok(id)
        }
    };
    ($first:ident $second:ident $($rest:ident)*) => {
        #[idempotent(key = id, ttl = "1h")]
        async fn $first(id: u32) -> Result<u32, Error> {
            $second(id).await
        }
        chain!($second $($rest)*);
    };
}

// Ten deep under the default limits of recursion and type length.
chain!(a b c d e f g h i j);

pub fn main() {
    drop(a(1));
}
