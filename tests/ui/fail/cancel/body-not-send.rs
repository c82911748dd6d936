use idem::{Error, idempotent};

use std::rc::Rc;

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Result<u32, Error> {
    let shared = Rc::new(id);
    std::future::ready(()).await;
    Ok(*shared)
}

fn main() {}
