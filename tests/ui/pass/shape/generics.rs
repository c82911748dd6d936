#![deny(warnings)]

use idem::{Error, idempotent};

use std::fmt::Display;

trait Gateway: Clone + Send + Sync + 'static {
    type Receipt: serde::Serialize + serde::de::DeserializeOwned + Send + 'static;
    fn pay(&self, id: u32) -> Self::Receipt;
}

#[derive(Clone)]
struct Shop<G> {
    gateway: G,
}

impl<G: Gateway> Shop<G> {
    #[idempotent(key = id, ttl = "1h", name = "shop.pay", clone = self)]
    async fn pay(&self, id: u32) -> Result<G::Receipt, Error> {
        Ok(self.gateway.pay(id))
    }
}

#[idempotent(key = (items.len(), LIMIT), ttl = "1h", name = "all", clone = item)]
async fn all<T, const LIMIT: usize>(
    items: Box<[u32; LIMIT]>,
    item: &T,
    show: impl Fn(&T) -> String + Send + 'static,
) -> Result<String, Error>
where
    T: Display + Clone + Send + Sync + 'static,
{
    Ok(format!("{}{}", items.len(), show(item)))
}

#[derive(Clone)]
struct Test;

impl Gateway for Test {
    type Receipt = u32;
    fn pay(&self, id: u32) -> u32 {
        id
    }
}

pub fn main() {
    drop(Shop { gateway: Test }.pay(1));
    drop(all(Box::new([1, 2]), &1u8, |item| item.to_string()));
}
