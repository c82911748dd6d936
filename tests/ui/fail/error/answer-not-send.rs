use idem::{Error, idempotent};

use std::marker::PhantomData;

#[derive(serde::Serialize, serde::Deserialize)]
struct Charge(PhantomData<*const u8>);

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<Charge, Error> {
    Err(Error::Failed { message: id.to_string() })
}

fn main() {}
