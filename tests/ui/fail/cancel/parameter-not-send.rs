use idem::{Error, idempotent};

use std::rc::Rc;

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32, shared: Rc<u32>) -> Result<u32, Error> {
    Ok(id + *shared)
}

fn main() {}
