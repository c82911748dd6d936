use idem::{Error, idempotent};

trait Charge {
    #[idempotent(key = id, ttl = "24h", name = "charge")]
    async fn charge(self, id: u32) -> Result<u32, Error>;
}

fn main() {}
