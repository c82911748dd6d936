use idem::{Error, idempotent};

struct Declined;

impl From<Error> for Declined {
    fn from(_: Error) -> Self {
        Self
    }
}

#[idempotent(key = id, ttl = "24h", on_error = store_text)]
async fn charge(id: u32) -> Result<u32, Declined> {
    Ok(id)
}

fn main() {}
