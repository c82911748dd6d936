use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
static CHARGE: u32 = 1;

fn main() {}
