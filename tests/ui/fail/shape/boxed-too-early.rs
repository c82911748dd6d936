use idem::{Error, idempotent};

type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

#[idempotent(key = id, ttl = "24h")]
fn charge(id: u32) -> BoxFuture<Result<u32, Error>> {
    let id = id + 1;
    Box::pin(async move { Ok(id) })
}

fn main() {}
