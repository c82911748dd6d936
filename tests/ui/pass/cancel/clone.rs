#![deny(warnings)]

use idem::{Error, idempotent};

use std::path::Path;
use std::sync::Arc;

#[derive(Clone)]
struct Shop(u32);

#[idempotent(key = (name, path, shop.0), ttl = "1h", clone = (shop, name, path, items, shared))]
async fn borrowed(
    shop: &Shop,
    name: &str,
    path: &Path,
    items: &[u32],
    shared: &Arc<Shop>,
) -> Result<String, Error> {
    let shared: &Shop = shared;
    Ok(format!(
        "{}{name}{}{}{}",
        shop.0,
        path.display(),
        items.len(),
        shared.0
    ))
}

impl Shop {
    #[idempotent(key = id, ttl = "1h", name = "shop.typed", clone = self)]
    async fn typed(self: &Arc<Self>, id: u32) -> Result<u32, Error> {
        Ok(self.0 + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.mutable", clone = (self, note))]
    async fn mutable(&self, id: u32, mut note: &str) -> Result<usize, Error> {
        let local = id.to_string();
        if self.0 > 3 {
            note = &local;
        }
        Ok(note.len())
    }
}

pub fn main() {
    let shop = Arc::new(Shop(1));
    drop(borrowed(&shop, "a", Path::new("b"), &[1], &shop));
    drop(shop.typed(1));
    drop(shop.mutable(1, "c"));
}
