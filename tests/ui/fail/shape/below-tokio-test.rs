use idem::{Error, idempotent};

fn block_on<T>(_: impl Future<Output = T>) -> T {
    std::process::abort()
}

// What is left below `#[tokio::test]`.
#[idempotent(key = 1 + 1, ttl = "24h")]
fn charge() -> Result<u32, Error> {
    let body = async { Ok(1) };
    block_on(body)
}

fn main() {}
