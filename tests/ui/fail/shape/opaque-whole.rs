use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> impl Copy {
    id
}

fn main() {}
