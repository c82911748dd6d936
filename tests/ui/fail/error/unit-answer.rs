use idem::idempotent;

#[idempotent(key = id, ttl = "24h")]
async fn charge(id: u32) -> () {
    let _ = id;
}

fn main() {}
