use idem::idempotent;

struct Shop;

#[idempotent(key = id, ttl = "24h")]
impl Shop {
    async fn charge(id: u32) {
        let _ = id;
    }
}

fn main() {}
