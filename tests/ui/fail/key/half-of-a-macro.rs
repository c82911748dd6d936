use idem::{Error, idempotent};

macro_rules! charge {
    ($name:ident) => {
        #[idempotent(key = id, ttl = "24h")]
        async fn charge($name: u32) -> Result<u32, Error> {
            Ok($name)
        }
    };
}

charge!(id);

fn main() {}
