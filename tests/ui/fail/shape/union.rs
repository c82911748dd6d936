use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
union Charge {
    id: u32,
}

fn main() {}
