use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
fn charge(id: u32) -> Result<u32, Error> {
    let future = async move { Ok(id) };
    futures::block_on(future)
}

fn main() {}
