use idem::{Error, idempotent};

#[derive(Clone)]
struct Shop<'a>(&'a str);

impl<'a> Shop<'a> {
    #[idempotent(key = id, ttl = "24h", name = "shop.charge", clone = self)]
    async fn charge(&self, id: u32) -> Result<usize, Error> {
        Ok(self.0.len() + id as usize)
    }
}

fn main() {}
