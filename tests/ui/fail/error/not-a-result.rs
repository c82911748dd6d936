use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Option<u32> {
    Some(id)
}

fn main() {}
