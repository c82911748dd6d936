//! Passes the library on, and an attribute of its own that says where it is.
#![deny(warnings)]

/// What applications use.
pub mod prelude {
    pub use ::idem;
    pub use ::idem::{Error, idempotent};
}

/// Declares an operation of the company's own kind.
#[macro_export]
macro_rules! operation {
    ($name:ident($key:ident: $ty:ty) -> $answer:ty: $body:expr) => {
        #[$crate::prelude::idempotent(key = $key, ttl = "24h", crate = $crate::prelude::idem)]
        async fn $name($key: $ty) -> ::core::result::Result<$answer, $crate::prelude::Error> {
            $body
        }
    };
}
