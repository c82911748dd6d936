use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
mod charge {}

fn main() {}
