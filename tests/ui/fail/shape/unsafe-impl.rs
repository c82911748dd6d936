use idem::idempotent;

struct Shop;

#[idempotent(key = id, ttl = "24h")]
unsafe impl Send for Shop {}

fn main() {}
