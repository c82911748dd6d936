use idem::{Error, idempotent};

struct Order;

#[idempotent(key = order, ttl = "24h")]
async fn charge(id: u32, order: Order) -> Result<u32, Error> {
    let _ = order;
    Ok(id)
}

fn main() {}
