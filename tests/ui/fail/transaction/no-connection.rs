use idem::{Error, idempotent};

struct Conn;

#[idempotent(key = id, ttl = "24h", tx = conn)]
async fn place(conn: &mut Conn, id: u32) -> Result<u32, Error> {
    let _: &mut Conn = conn;
    Ok(id)
}

fn main() {}
