use idem::{Error, idempotent};

struct Order {
    id: u32,
}

#[idempotent(key = order.number, ttl = "24h")]
async fn charge(order: Order) -> Result<u32, Error> {
    Ok(order.id)
}

fn main() {}
