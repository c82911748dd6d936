use idem::{Error, idempotent};

struct Order;

#[idempotent(key = id, ttl = "24h", label = order)]
async fn charge(id: u32, order: Order) -> Result<u32, Error> {
    let _ = order;
    Ok(id)
}

fn main() {}
