use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
macro_rules! charge {
    () => {};
}

fn main() {}
