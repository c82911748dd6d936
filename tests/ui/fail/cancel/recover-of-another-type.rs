use idem::{Error, idempotent};

async fn find(_: u32) -> Option<u32> {
    None
}

#[idempotent(key = id, ttl = "24h", on_unknown = recover(find(id)))]
async fn charge(id: u32) -> Result<u32, Error> {
    Ok(id)
}

fn main() {}
