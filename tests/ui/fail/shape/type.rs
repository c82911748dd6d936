use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
type Charge = u32;

fn main() {}
