#![deny(warnings)]

use idem::{Disposition, Error, idempotent};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
enum ShopError {
    Declined,
    Engine(Error),
}

impl From<Error> for ShopError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl ShopError {
    fn disposition(&self) -> Disposition {
        match self {
            Self::Declined => Disposition::Store,
            Self::Engine(_) => Disposition::Unknown,
        }
    }
}

/// `E` keeps nothing that could be serialized, nor a `From`.
struct Foreign(String);

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn wrap(error: Error) -> Foreign {
    Foreign(error.to_string())
}

type Answer<T> = Result<T, ShopError>;

#[idempotent(key = id, ttl = "1h")]
async fn stored(id: u32) -> Answer<u32> {
    if id == 0 {
        Err(ShopError::Declined)
    } else {
        Ok(id)
    }
}

#[idempotent(key = id, ttl = "1h", on_error = classify(ShopError::disposition))]
async fn classified(id: u32) -> Answer<u32> {
    Ok(id)
}

#[idempotent(key = id, ttl = "1h", map_err = wrap, on_error = store_text)]
async fn text(id: u32) -> Result<u32, Foreign> {
    Ok(id)
}

#[idempotent(key = id, ttl = "1h", map_err = wrap, on_error = release)]
async fn released(id: u32) -> Result<u32, Foreign> {
    Ok(id)
}

#[idempotent(key = id, ttl = "1h", map_err = wrap, on_error = unknown)]
async fn unknown(id: u32) -> Result<u32, Foreign> {
    Ok(id)
}

pub fn main() {
    drop((stored(1), classified(1), text(1), released(1), unknown(1)));
}
