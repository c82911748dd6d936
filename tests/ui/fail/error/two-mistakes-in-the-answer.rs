use idem::idempotent;

struct Charge;

#[idempotent(key = id, ttl = "24h", on_error = store_text)]
async fn charge(id: u32) -> Result<Charge, String> {
    Err(id.to_string())
}

fn main() {}
