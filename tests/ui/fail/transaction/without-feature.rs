use std::time::Duration;

use idem::{Engine, Error, idempotent};

// As one of an sqlx that the user has: these tests are built without the feature `tx`.
struct Conn;

#[idempotent(key = id, ttl = "24h", tx = conn)]
async fn place(conn: &mut Conn, id: u32) -> Result<u32, Error> {
    let _ = conn;
    Ok(id)
}

async fn in_transaction(engine: &Engine, conn: &mut Conn) -> Result<u32, Error> {
    let call = engine.call("orders.place", &7, Duration::from_secs(60));
    call.in_transaction(conn).run(async |_| Ok(7)).await
}

async fn received(engine: &Engine, conn: &mut Conn) -> bool {
    let inbox = engine.inbox("orders.place");
    let message = inbox.message("evt_1");
    let uncommitted = message.receive_in(conn, async |_| Ok::<_, Error>(7)).await;
    uncommitted.must_roll_back()
}

fn main() {}
