//! Functions that must mean the same in every edition.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use idem::{Engine, Error, Recovered};

pub(crate) async fn engine() -> Engine {
    Engine::builder(idem::store::MemoryStore::new())
        .build()
        .await
        .unwrap()
}

type Log = Arc<Mutex<Vec<&'static str>>>;

struct Noisy(&'static str, Log);

impl Drop for Noisy {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0);
    }
}

struct Pair {
    used: u32,
    _guard: Noisy,
}

/// The guard beside the used field lives as long as the body, also where closures
/// capture single fields; the lock in the key does not outlive the key.
#[idem::idempotent(key = *count.lock().unwrap(), ttl = "1h")]
async fn captures(
    log: Log,
    count: Arc<Mutex<u32>>,
    pair: Pair,
    _permit: Noisy,
    _: Noisy,
) -> Result<u32, Error> {
    tokio::task::yield_now().await;
    log.lock().unwrap().push("body");
    Ok(pair.used)
}

async fn plain(
    log: Log,
    _count: Arc<Mutex<u32>>,
    pair: Pair,
    _permit: Noisy,
    _: Noisy,
) -> Result<u32, Error> {
    tokio::task::yield_now().await;
    log.lock().unwrap().push("body");
    Ok(pair.used)
}

#[tokio::test]
async fn arguments_live_as_long_as_in_a_plain_function() {
    let log = Log::default();
    let noisy = |name| Noisy(name, Arc::clone(&log));
    let count = Arc::new(Mutex::new(1));
    let pair = || Pair {
        used: 1,
        _guard: noisy("pair"),
    };
    let call = plain(
        Arc::clone(&log),
        Arc::clone(&count),
        pair(),
        noisy("permit"),
        noisy("_"),
    );
    call.await.unwrap();
    let expected = std::mem::take(&mut *log.lock().unwrap());
    assert_eq!(expected, ["body", "_", "permit", "pair"]);
    let call = captures(Arc::clone(&log), count, pair(), noisy("permit"), noisy("_"));
    is_send(&call);
    engine().await.scope(call).await.unwrap();
    assert_eq!(*log.lock().unwrap(), expected);
}

fn is_send(_: &impl Send) {}

async fn find(order: &str) -> Result<Recovered<usize>, Error> {
    tokio::task::yield_now().await;
    let _ = order;
    Ok(Recovered::NotDone)
}

#[idem::idempotent(key = order, payload = (amount, amount + 1), ttl = "1h", on_unknown = recover(find(&order)))]
async fn charge(order: String, mut amount: usize) -> Result<usize, Error> {
    amount += order.into_bytes().len();
    if amount == 7 {
        return Ok(0);
    }
    Ok(amount)
}

#[idem::idempotent(key = id, ttl = "1h", on_cancel = abandon)]
async fn in_place(cell: &Cell<u32>, mut id: &str) -> Result<usize, Error> {
    let local = format!("{id}{}", cell.get());
    if id.is_empty() {
        id = &local;
    }
    tokio::task::yield_now().await;
    Ok(id.len())
}

#[idem::idempotent(key = id, ttl = "1h")]
fn boxed(id: u32) -> Pin<Box<dyn std::future::Future<Output = Result<u32, Error>> + Send>> {
    Box::pin(async move { Ok(id) })
}

#[derive(Clone)]
struct Shop {
    fee: u32,
}

impl Shop {
    #[idem::idempotent(key = (note, self.fee), ttl = "1h", name = "shop.cloned", clone = (self, note))]
    async fn cloned(&self, note: &str) -> Result<String, Error> {
        let fee = || self.fee;
        Ok(format!("{note}{}", fee()))
    }
}

#[tokio::test]
async fn shapes_that_mean_the_same_everywhere() {
    let engine = engine().await;
    for _ in 0..2 {
        assert_eq!(engine.scope(charge("ab".to_owned(), 1)).await, Ok(3));
        assert_eq!(engine.scope(boxed(1)).await, Ok(1));
        let cell = Cell::new(12);
        assert_eq!(engine.scope(in_place(&cell, "abc")).await, Ok(3));
        let shop = Shop { fee: 5 };
        assert_eq!(engine.scope(shop.cloned("a")).await, Ok("a5".to_owned()));
    }
}
