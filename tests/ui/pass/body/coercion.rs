#![deny(warnings)]

use std::error::Error as StdError;

use idem::idempotent;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Arms of different types meet in the return type.
#[idempotent(key = id, ttl = "1h", on_error = store_text)]
async fn arms(id: u32) -> Result<u32, BoxError> {
    match id {
        0 => Err(Box::new(std::fmt::Error)),
        1 => Err(Box::new(std::io::Error::other("no"))),
        2 => Err("text".into()),
        _ => Ok("3".parse()?),
    }
}

#[idempotent(key = id, ttl = "1h", on_error = store_text, on_cancel = abandon)]
async fn in_place(id: u32) -> Result<u32, BoxError> {
    if id == 0 {
        return Err(Box::new(std::fmt::Error));
    }
    Err(Box::new(std::io::Error::other("no")))
}

#[idempotent(key = id, ttl = "1h", on_error = store_text)]
fn returned(id: u32) -> impl Future<Output = Result<u32, BoxError>> + Send {
    async move {
        match id {
            0 => Err(Box::new(std::fmt::Error)),
            _ => Err(Box::new(std::io::Error::other("no"))),
        }
    }
}

pub fn main() {
    drop((arms(1), in_place(1), returned(1)));
}
