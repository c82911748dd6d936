//! Methods of traits: native, defaults, and what `#[async_trait]` makes of them.

use std::sync::Arc;

use async_trait::async_trait;
use idem::{Error, idempotent};

use crate::{Runs, once};

trait Native {
    fn charge(self: Arc<Self>, id: u32) -> impl Future<Output = Result<u32, Error>> + Send;

    /// One name for all implementors: the key tells them apart.
    #[idempotent(key = (self.number(), id), ttl = "1h", name = "native.twice", on_cancel = abandon)]
    async fn twice(&self, id: u32) -> Result<u32, Error> {
        self.runs().add();
        Ok(self.number() + 2 * id)
    }

    fn number(&self) -> u32;
    fn runs(&self) -> &Runs;
}

#[async_trait]
trait Boxed: Send + Sync {
    async fn charge(&self, id: u32) -> Result<u32, Error>;
    async fn lend(&self, id: &str) -> Result<usize, Error>;
    async fn consume(self: Arc<Self>, order: (u32, u32)) -> Result<u32, Error>;

    #[idempotent(key = (self.fee(), id), ttl = "1h", name = "boxed.default", on_cancel = abandon)]
    async fn default_method(&self, mut id: u32) -> Result<u32, Error> {
        self.note();
        id += self.fee();
        Ok(id)
    }

    fn fee(&self) -> u32;
    fn note(&self);
}

#[async_trait(?Send)]
trait Local {
    async fn charge(&self, id: u32) -> Result<u32, Error>;
}

#[derive(Debug, Clone, Default)]
struct Shop {
    runs: Runs,
}

impl Native for Shop {
    #[idempotent(key = id, ttl = "1h", name = "shop.native")]
    async fn charge(self: Arc<Self>, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.number() + id)
    }

    fn number(&self) -> u32 {
        7
    }

    fn runs(&self) -> &Runs {
        &self.runs
    }
}

/// The attribute of the whole block stands above ours, and has run before.
#[async_trait]
impl Boxed for Shop {
    #[idempotent(key = (self.fee(), id), ttl = "1h", name = "shop.boxed", clone = self)]
    async fn charge(&self, id: u32) -> Result<u32, Error> {
        self.runs.add();
        let text = format!("{}", self.fee());
        Ok(text.parse::<u32>().unwrap() + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.lend", on_cancel = abandon)]
    async fn lend(&self, mut id: &str) -> Result<usize, Error> {
        self.note();
        let local = format!("{id}!");
        if id.len() > 2 {
            id = &local;
        }
        Ok(id.len())
    }

    #[idempotent(key = order.0, payload = order, ttl = "1h", name = "shop.consume")]
    #[tracing::instrument(skip_all)]
    async fn consume(self: Arc<Self>, order: (u32, u32)) -> Result<u32, Error> {
        self.note();
        let (id, _) = order;
        Ok(id)
    }

    fn fee(&self) -> u32 {
        3
    }

    fn note(&self) {
        self.runs.add();
    }
}

#[async_trait(?Send)]
impl Local for Shop {
    #[idempotent(key = id, ttl = "1h", name = "shop.local", on_cancel = abandon)]
    async fn charge(&self, id: u32) -> Result<u32, Error> {
        let shared = std::rc::Rc::new(id);
        tokio::task::yield_now().await;
        self.runs.add();
        Ok(*shared)
    }
}

#[tokio::test]
async fn native_methods_and_defaults() {
    let shop = Arc::new(Shop::default());
    let charge = || Native::charge(Arc::clone(&shop), 1);
    assert_eq!(once(&shop.runs, charge).await, 8);
    assert_eq!(once(&shop.runs, || shop.twice(1)).await, 9);
}

#[tokio::test]
async fn methods_below_async_trait() {
    let shop = Arc::new(Shop::default());
    let object: &dyn Boxed = &*shop;
    assert_eq!(once(&shop.runs, || object.charge(1)).await, 4);
    assert_eq!(once(&shop.runs, || object.lend("abc")).await, 4);
    assert_eq!(once(&shop.runs, || object.default_method(1)).await, 4);
    let consume = || Arc::clone(&shop).consume((5, 6));
    assert_eq!(once(&shop.runs, consume).await, 5);
    let local: &dyn Local = &*shop;
    assert_eq!(once(&shop.runs, || local.charge(2)).await, 2);
}
