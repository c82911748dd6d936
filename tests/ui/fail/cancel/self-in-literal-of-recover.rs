use idem::{Error, Recovered, idempotent};

#[derive(Debug, Clone)]
struct Shop;

async fn find(_: String) -> Result<Recovered<u32>, Error> {
    Ok(Recovered::NotDone)
}

impl Shop {
    #[idempotent(
        key = id,
        ttl = "24h",
        name = "shop.charge",
        clone = self,
        on_unknown = recover(find(format!("{self:?}")))
    )]
    async fn charge(&self, id: u32) -> Result<u32, Error> {
        Ok(id)
    }
}

fn main() {}
