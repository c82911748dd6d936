#![deny(warnings)]

use idem::transaction::TxConnection;
use idem::{Error, idempotent};

/// Not serializable.
#[derive(Debug)]
pub struct Failure;

impl From<Error> for Failure {
    fn from(_: Error) -> Self {
        Self
    }
}

fn write(_: &mut impl TxConnection) {}

#[idempotent(key = id, ttl = "1h", name = "a", tx = conn)]
pub async fn generic<C: TxConnection>(conn: &mut C, id: &str) -> Result<u32, Failure> {
    write(conn);
    write(conn);
    Ok(u32::from(id.is_empty()))
}

#[idempotent(key = id, ttl = "1h", name = "b", tx = savepoint(conn), payload = *count)]
pub async fn borrows<'c, C>(id: u32, conn: &'c mut C, count: &u32) -> Result<u32, Failure>
where
    C: TxConnection,
{
    write(conn);
    Ok(id + count)
}

fn twice<C: TxConnection>(conn: &mut &mut C) {
    write(*conn);
    write(*conn);
}

#[idempotent(key = id, ttl = "1h", name = "c", tx = conn, on_error = store_text)]
pub async fn rebound<C: TxConnection>(mut conn: &mut C, id: u32) -> Result<u32, Error> {
    twice(&mut conn);
    write(conn);
    Ok(id)
}

pub struct Shop;

impl Shop {
    #[idempotent(key = id, ttl = "1h", name = "shop.place", tx = r#final)]
    pub async fn place(&self, r#final: &mut impl TxConnection, id: u32) -> Result<u32, Failure> {
        write(r#final);
        let _: &Self = self;
        Err(Failure)
    }
}

/// It is `Send` exactly if the body is.
pub fn send<C: TxConnection>(conn: &mut C) -> impl Future<Output = Result<u32, Failure>> + Send {
    generic(conn, "id")
}

pub fn main() {}
