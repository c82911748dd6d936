#![deny(warnings)]

use idem::{Error, idempotent};

pub mod prelude {
    pub mod deeper {
        pub use ::idem as runtime;
    }
}

use prelude::deeper;

#[idempotent(key = id, ttl = "1h", crate = crate::keyword_crate_path::prelude::deeper::runtime)]
async fn absolute(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, ttl = "1h", crate = deeper::runtime)]
async fn relative(id: u32) -> Result<u32, Error> {
    Ok(id)
}

#[idempotent(key = id, ttl = "1h", crate = ::idem)]
async fn rooted(id: u32) -> Result<u32, Error> {
    Ok(id)
}

mod inside {
    #[idem::idempotent(key = id, ttl = "1h", crate = super::deeper::runtime)]
    pub async fn parent(id: u32) -> Result<u32, idem::Error> {
        Ok(id)
    }
}

macro_rules! reexporting {
    ($name:ident) => {
        #[idempotent(key = id, ttl = "1h", crate = $crate::keyword_crate_path::prelude::deeper::runtime)]
        async fn $name(id: u32) -> Result<u32, Error> {
            Ok(id)
        }
    };
}

reexporting!(of_a_macro);

pub fn main() {
    drop((
        absolute(1),
        relative(1),
        rooted(1),
        inside::parent(1),
        of_a_macro(1),
    ));
}
