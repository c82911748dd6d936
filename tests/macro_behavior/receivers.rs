//! Methods, with every receiver that Rust has.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use idem::{Error, idempotent};

use crate::{Runs, once};

#[derive(Debug, Clone, Default)]
struct Shop {
    fee: u32,
    runs: Runs,
}

impl Shop {
    const ONE: u32 = 1;

    fn new(runs: &Runs) -> Self {
        Self {
            fee: 1,
            runs: runs.clone(),
        }
    }

    #[idempotent(key = (self.fee, id), ttl = "1h", name = "shop.by_value")]
    async fn by_value(self, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = (self.fee, id), ttl = "1h", name = "shop.mutable")]
    async fn mutable(mut self, id: u32) -> Result<u32, Error> {
        self.runs.add();
        self.fee += Self::ONE;
        Ok(self.fee + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.shared")]
    async fn shared(self: Arc<Self>, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.mutable_shared")]
    async fn mutable_shared(mut self: Arc<Self>, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Arc::make_mut(&mut self).fee += 1;
        Ok(self.fee + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.boxed")]
    async fn boxed(self: Box<Self>, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.pinned")]
    async fn pinned(self: Pin<Arc<Self>>, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.counted", on_cancel = abandon)]
    async fn counted(self: Rc<Self>, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.constant")]
    async fn constant(&'static self, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = (self.fee, id), ttl = "1h", name = "shop.cloned", clone = self)]
    async fn cloned(&self, id: u32) -> Result<u32, Error> {
        self.runs.add();
        let fee = || self.fee;
        Ok(fee() + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.typed", clone = self)]
    async fn typed(self: &Arc<Self>, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = (self.fee, id), ttl = "1h", name = "shop.lent", on_cancel = abandon)]
    async fn lent(&self, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.lent_pin", on_cancel = abandon)]
    async fn lent_pin(self: Pin<&Self>, id: u32) -> Result<u32, Error> {
        self.runs.add();
        Ok(self.fee + id)
    }

    #[idempotent(key = id, ttl = "1h", name = "shop.open")]
    async fn open(runs: Runs, id: u32) -> Result<u32, Error> {
        runs.add();
        Ok(Self { fee: id, runs }.fee + Self::ONE)
    }
}

#[tokio::test]
async fn owned_receivers_move_into_the_task() {
    let runs = Runs::default();
    let shop = || Shop::new(&runs);
    assert_eq!(once(&runs, || shop().by_value(1)).await, 2);
    assert_eq!(once(&runs, || shop().mutable(1)).await, 3);
    assert_eq!(once(&runs, || Arc::new(shop()).shared(1)).await, 2);
    assert_eq!(once(&runs, || Arc::new(shop()).mutable_shared(1)).await, 3);
    assert_eq!(once(&runs, || Box::new(shop()).boxed(1)).await, 2);
    assert_eq!(once(&runs, || Arc::pin(shop()).pinned(1)).await, 2);
    let constant: &'static Shop = Box::leak(Box::new(shop()));
    assert_eq!(once(&runs, || constant.constant(1)).await, 2);
}

#[tokio::test]
async fn borrowed_receivers_are_cloned_or_lent() {
    let runs = Runs::default();
    let shop = Arc::new(Shop::new(&runs));
    assert_eq!(once(&runs, || shop.cloned(1)).await, 2);
    assert_eq!(once(&runs, || shop.typed(1)).await, 2);
    assert_eq!(once(&runs, || shop.lent(1)).await, 2);
    let pinned = Arc::pin(Shop::new(&runs));
    assert_eq!(once(&runs, || pinned.as_ref().lent_pin(1)).await, 2);
    assert_eq!(
        once(&runs, || Rc::new(Shop::new(&runs)).counted(1)).await,
        2
    );
}

#[tokio::test]
async fn no_receiver_at_all() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || Shop::open(runs.clone(), 1)).await, 2);
}
