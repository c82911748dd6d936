//! Redis in front of Postgres.

use std::sync::Arc;
use std::time::Duration;

use idem::store::tiered::{Front as _, Kind};
use idem::store::{MemoryStore, Meta, RedisStore, Store, TieredStore};
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};
use idem::{Engine, Error, How, StoreError};

use crate::{postgres, redis};

fn meta() -> Meta {
    Meta {
        format: "idem/1".to_owned(),
        instance: [1; 16],
        secret_check: [0; 32],
    }
}

/// The store of another harness, behind a front on a server.
struct Fronted<H> {
    behind: H,
    front: RedisStore,
}

/// A store as a type of its own.
#[derive(Debug)]
struct Behind(Arc<dyn Store>);

macro_rules! passed_on {
    ($($name:ident($request:ty) -> $reply:ty;)*) => {
        #[async_trait::async_trait]
        impl Store for Behind {
            fn kind(&self) -> &'static str {
                self.0.kind()
            }
            fn admin(&self) -> Option<&dyn idem::store::StoreAdmin> {
                self.0.admin()
            }
            fn lacks(&self) -> &'static [idem::store::Capability] {
                self.0.lacks()
            }
            async fn check(&self) -> Result<Vec<idem::store::Finding>, StoreError> {
                self.0.check().await
            }
            async fn renewer(&self) -> Result<Box<dyn idem::store::Renewer>, StoreError> {
                self.0.renewer().await
            }
            $(async fn $name(&self, request: &$request) -> Result<$reply, StoreError> {
                self.0.$name(request).await
            })*
        }
    };
}

passed_on! {
    pin(Meta) -> Meta;
    reserve(idem::store::Reserve) -> idem::store::Reserved;
    complete(idem::store::Complete) -> idem::store::Written;
    release(idem::store::Release) -> idem::store::Written;
    mark_unknown(idem::store::MarkUnknown) -> idem::store::Written;
    sweep(idem::store::Sweep) -> u64;
    record_step(idem::store::RecordStep) -> idem::store::Written;
    steps(idem::store::Holder) -> Option<Vec<idem::store::Step>>;
    standings(idem::store::Standings) -> Vec<Option<idem::record::Standing>>;
}

impl<H: Harness> Harness for Fronted<H> {
    async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
        let behind = Behind(self.behind.open(place, clock.clone()).await?);
        let options = TieredStore::options(self.front.clone(), behind);
        // No hints: the suite asks for what only the store behind knows.
        let store = options.hint(Duration::ZERO).clock(clock).build();
        // As an engine does, without which the front is not used; but not
        // before those who test just that. Each place is a store of its own.
        if !place.starts_with("meta_") {
            let mut instance = [0; 16];
            for (at, byte) in place.bytes().enumerate() {
                instance[at % 16] ^= byte.rotate_left(u32::try_from(at / 16).unwrap());
            }
            store.pin(&Meta { instance, ..meta() }).await?;
        }
        Ok(Arc::new(store))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_before_postgres_keeps_the_contract() {
    let harness = Fronted {
        behind: postgres::harness().await,
        front: redis::opened(&redis::single(), &redis::prefix()).await,
    };
    println!("{}", conformance::run_all(harness).await);
}

#[tokio::test]
async fn a_front_on_a_server_compares_kinds_and_expires() {
    for url in redis::both() {
        let prefix = redis::prefix();
        let front = redis::opened(&url, &prefix).await;
        let ttl = Duration::from_secs(100);
        let stands = async || {
            let entry = front.get("k").await.unwrap();
            entry.map(|entry| String::from_utf8(entry).unwrap())
        };
        assert_eq!(stands().await, None);
        front.hint("k", b"H1", ttl).await.unwrap();
        front.hint("k", b"H2", ttl).await.unwrap();
        assert_eq!(stands().await.as_deref(), Some("H2"));
        front.clear_hint("k").await.unwrap();
        assert_eq!(stands().await, None, "a hint is deleted");
        front.hint("k", b"H3", ttl).await.unwrap();
        front.fill("k", b"A1", ttl).await.unwrap();
        front.hint("k", b"H4", ttl).await.unwrap();
        front.clear_hint("k").await.unwrap();
        assert_eq!(stands().await.as_deref(), Some("A1"));
        front.fill("k", b"A2", ttl).await.unwrap();
        assert_eq!(stands().await.as_deref(), Some("A2"));
        front.block("k", 2 * ttl).await.unwrap();
        front.fill("k", b"A3", ttl).await.unwrap();
        front.hint("k", b"H5", ttl).await.unwrap();
        front.clear_hint("k").await.unwrap();
        let block = front.get("k").await.unwrap().unwrap();
        assert_eq!(Kind::of(&block), Some(Kind::Block));
        let left_ms: i64 = redis::raw(&url, &["PTTL", &format!("{prefix}:f:k")]).await;
        assert!((190_000..=200_000).contains(&left_ms), "{left_ms}");
    }
}

/// The front is emptied, by its server, between any two calls.
#[tokio::test]
async fn a_front_that_loses_everything_costs_no_second_run() {
    let prefix = redis::prefix();
    let front = redis::opened(&redis::single(), &prefix).await;
    let store = TieredStore::new(front, MemoryStore::new());
    let engine = Engine::builder(store).build().await.unwrap();
    let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for round in 0..20_u32 {
        let runs = Arc::clone(&runs);
        let call = engine.call("tiered.call", &"k", Duration::from_secs(60));
        let (answer, outcome) = call
            .run_detailed(async move {
                runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                Ok::<_, Error>(round)
            })
            .await;
        assert_eq!(answer, Ok(0));
        let how = outcome.how;
        assert!(round == 0 || how == How::Replayed, "{how:?}");
        if round % 3 == 1 {
            let pattern = format!("{prefix}:f:*");
            let keys: Vec<String> = redis::raw(&redis::single(), &["KEYS", &pattern]).await;
            assert!(!keys.is_empty(), "the front has learned the answer");
            for key in keys {
                let _: u64 = redis::raw(&redis::single(), &["DEL", &key]).await;
            }
        }
    }
    assert_eq!(runs.load(std::sync::atomic::Ordering::SeqCst), 1);
}
