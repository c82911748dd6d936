use idem::idempotent;

type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

#[idempotent(key = id, ttl = "24h")]
fn charge(id: u32) -> BoxFuture<Option<u32>> {
    Box::pin(async move { Some(id) })
}

fn main() {}
