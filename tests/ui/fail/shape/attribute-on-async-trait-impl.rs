use idem::idempotent;

struct Shop;

trait Charge {}

#[idempotent(key = id, ttl = "24h")]
impl Charge for Shop {}

fn main() {}
