use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
struct Charge {
    id: u32,
}

fn main() {}
