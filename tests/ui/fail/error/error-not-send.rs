use idem::{Error, idempotent};

use std::marker::PhantomData;

#[derive(serde::Serialize, serde::Deserialize)]
struct Declined(PhantomData<*const u8>);

impl From<Error> for Declined {
    fn from(_: Error) -> Self {
        Self(PhantomData)
    }
}

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Declined> {
    Ok(id)
}

fn main() {}
