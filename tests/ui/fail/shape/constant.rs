use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
const CHARGE: u32 = 1;

fn main() {}
