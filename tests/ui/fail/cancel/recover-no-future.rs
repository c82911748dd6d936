use idem::{Error, Recovered, idempotent};

fn find(_: u32) -> Result<Recovered<u32>, Error> {
    Ok(Recovered::NotDone)
}

#[idempotent(key = id, ttl = "24h", on_unknown = recover(find(id)))]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
