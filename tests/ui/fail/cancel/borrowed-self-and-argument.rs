use idem::{Error, idempotent};

struct Shop;

impl Shop {
    #[idempotent(key = note, ttl = "24h", name = "shop.charge")]
    async fn charge(&self, note: &str) -> Result<usize, Error> {
        Ok(note.len())
    }
}

fn main() {}
