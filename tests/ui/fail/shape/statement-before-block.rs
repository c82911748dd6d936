use idem::{Error, idempotent};

#[idempotent(key = id, ttl = "24h")]
fn charge(id: u32) -> impl Future<Output = Result<u32, Error>> {
    println!("too early");
    async move { Ok(id) }
}

fn main() {}
