use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h", on_cancel = abandon)]
async fn charge<'a>(id: &'a u32) -> Result<std::borrow::Cow<'a, str>, Error> {
    Ok(id.to_string().into())
}

fn main() {}
