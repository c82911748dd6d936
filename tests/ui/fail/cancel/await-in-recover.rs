use idem::{Error, idempotent};

async fn find(_: u32) -> Result<idem::Recovered<u32>, Error> {
    Ok(idem::Recovered::NotDone)
}

#[idempotent(key = id, ttl = "24h", on_unknown = recover(find(id).await))]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
