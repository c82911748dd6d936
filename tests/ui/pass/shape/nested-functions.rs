#![deny(warnings)]

use idem::{Error, idempotent};

async fn outer(id: u32) -> Result<u32, Error> {
    #[idempotent(key = id, ttl = "1h", name = "outer.inner")]
    async fn inner(id: u32) -> Result<u32, Error> {
        #[idempotent(key = id, ttl = "1h", name = "outer.inner.innermost")]
        async fn innermost(id: u32) -> Result<u32, Error> {
            Ok(id)
        }
        innermost(id).await
    }
    inner(id).await
}

pub fn main() {
    drop(outer(1));
}
