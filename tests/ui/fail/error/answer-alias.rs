use idem::{Error, idempotent};

struct Charge {
    id: u32,
}

type Answer = Result<Charge, Error>;

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> Answer {
    Ok(Charge { id })
}

fn main() {}
