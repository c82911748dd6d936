use idem::{Error, idempotent};

struct Delivery {
    delivery_tag: u64,
}

#[idempotent(key = delivery.delivery_tag, ttl = "24h")]
async fn charge(delivery: Delivery) -> Result<u64, Error> {
    Ok(delivery.delivery_tag)
}

fn main() {}
