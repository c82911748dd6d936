use idem::{Error, idempotent};

struct Conn;

#[idempotent(key = id, ttl = "24h", tx = savepoint(conn))]
async fn place(conn: &Conn, id: u32) -> Result<u32, Error> {
    let _: &Conn = conn;
    Ok(id)
}

fn main() {}
