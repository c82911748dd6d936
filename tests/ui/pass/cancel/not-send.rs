#![deny(warnings)]

use idem::{Error, idempotent};

use std::rc::Rc;

/// In place, nothing has to be `Send`.
#[idempotent(key = id, ttl = "1h", on_cancel = abandon)]
async fn charge(id: u32, shared: Rc<u32>) -> Result<u32, Error> {
    let also = Rc::clone(&shared);
    tokio::task::yield_now().await;
    Ok(id + *shared + *also)
}

pub fn main() {
    drop(charge(1, Rc::new(2)));
}
