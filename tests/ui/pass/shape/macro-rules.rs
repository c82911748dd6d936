#![deny(warnings)]

use idem::{Error, idempotent};

macro_rules! operation {
    ($(#[$attr:meta])* $vis:vis $name:ident, $key:ident: $ty:ty, $body:block) => {
        $(#[$attr])*
        #[idempotent(key = $key, ttl = "1h")]
        $vis async fn $name($key: $ty) -> Result<$ty, Error> $body
    };
}

operation! {
    /// With fragments from outside.
    pub(crate) charge, id: u32, { Ok(id) }
}

operation!(refund, note: String, { Ok(note) });

mod inside {
    macro_rules! whole {
        ($key:ident, $($function:tt)*) => {
            #[idem::idempotent(key = $key, ttl = "1h")]
            $($function)*
        };
    }

    whole! {
        id,
        pub async fn whole(id: u32) -> Result<u32, idem::Error> { Ok(id) }
    }
}

pub fn main() {
    drop(charge(1));
    drop(refund(String::new()));
    drop(inside::whole(1));
}
