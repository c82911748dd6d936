use idem::{Error, idempotent};

#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Revision(u64);

#[idempotent(key = id, ttl = "24h", version = (revision, id))]
async fn apply(id: u32, revision: Revision) -> Result<u64, Error> {
    Ok(revision.0)
}

fn main() {}
