use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
trait Charge {}

fn main() {}
