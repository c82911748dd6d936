use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
enum Charge {
    Done,
}

fn main() {}
