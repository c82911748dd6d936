use idem::{Error, idempotent};

trait Shop: Send + Sized + 'static {
    #[idempotent(key = id, ttl = "24h")]
    async fn charge(self, id: u32) -> Result<u32, Error> {
        Ok(id)
    }
}

fn main() {}
