//! The contract, and what only these servers can get wrong of it.

use std::sync::Arc;
use std::time::Duration;

use idem::record::UnknownReason;
use idem::store::{
    Complete, GiveBack, Lease, MarkUnknown, MemoryStore, Meta, RedisStore, Release, Reserve,
    Reserved, Store, StoreAdmin as _, Written,
};
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};
use idem::{Engine, Error, StoreError, StoreErrorKind};
use tokio::sync::Barrier;

use super::{
    LEASE, TTL, answer, both, cluster, id, opened, prefix, raw, record_key, rerun, single, won,
};
use idem::redis::Client;
use idem::redis::cluster::ClusterClient;
use idem::redis::cluster_read_routing::RandomReplicaStrategy;

/// Every place of the suite is a prefix of its own.
struct Redis {
    url: String,
    prefix: String,
}

impl Harness for Redis {
    async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
        // Names are long; a digest of them is not.
        let short = place.bytes().fold(0_u64, |hash, byte| {
            hash.wrapping_mul(1_099_511_628_211) ^ u64::from(byte)
        });
        let store = RedisStore::options()
            .prefix(format!("{}:{short:x}", self.prefix))
            .clock(clock)
            .connect(&self.url)
            .await?;
        Ok(Arc::new(store))
    }
}

pub(crate) fn harness(url: String) -> impl Harness {
    Redis {
        url,
        prefix: prefix(),
    }
}

async fn keeps_the_contract(url: String) {
    println!("{}", conformance::run_all(harness(url)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_server_keeps_the_contract() {
    keeps_the_contract(single()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_keeps_the_contract() {
    keeps_the_contract(cluster()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_serves_twenty_keys_with_slow_bodies_and_waiting_callers() {
    for url in both() {
        let store = opened(&url, &prefix()).await;
        let engine = Engine::builder(store).build().await.unwrap();
        // No body ends before all have begun.
        let all = Arc::new(Barrier::new(20));
        let mut calls = tokio::task::JoinSet::new();
        for caller in 0..40_usize {
            let (engine, all) = (engine.clone(), Arc::clone(&all));
            calls.spawn(async move {
                let key = caller % 20;
                let call = engine.call("pool.slow", &key, Duration::from_secs(60));
                call.run(async move {
                    all.wait().await;
                    Ok::<_, Error>(key)
                })
                .await
            });
        }
        let answers = calls.join_all().await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
}

#[tokio::test]
async fn a_server_that_forgets_all_scripts_between_any_two_calls_is_not_noticed() {
    for url in both() {
        let store = opened(&url, &prefix()).await;
        let flush = async || raw::<()>(&url, &["SCRIPT", "FLUSH"]).await;
        let meta = Meta {
            format: "idem/1".to_owned(),
            instance: [1; 16],
            secret_check: [2; 32],
        };
        flush().await;
        assert_eq!(store.pin(&meta).await.unwrap(), meta);
        flush().await;
        let first = won(&store, &rerun(1, 1)).await;
        let mut renewer = store.renewer().await.unwrap();
        let lease = Lease {
            holder: first,
            lease_us: LEASE,
        };
        flush().await;
        assert_eq!(renewer.renew(&[lease]).await.unwrap(), [true]);
        flush().await;
        let unknown = MarkUnknown {
            holder: first,
            reason: UnknownReason::Panicked,
            undecided_retry_us: None,
        };
        assert_eq!(store.mark_unknown(&unknown).await.unwrap(), Written::Done);
        flush().await;
        let second = won(&store, &rerun(1, 2)).await;
        flush().await;
        assert_eq!(
            store.complete(&answer(second)).await.unwrap(),
            Written::Done
        );
        flush().await;
        let replayed = store.reserve(&rerun(1, 3)).await.unwrap();
        assert!(matches!(replayed, Reserved::Completed { .. }));
        let third = won(&store, &rerun(2, 1)).await;
        flush().await;
        let back = GiveBack {
            id: third.id,
            claim: third.claim,
            ttl_us: None,
        };
        assert_eq!(renewer.give_back(&back).await.unwrap(), Written::Done);
        flush().await;
        assert!(store.get(&id(1)).await.unwrap().is_some());
        flush().await;
        assert_eq!(store.audit(&id(1)).await.unwrap(), []);
    }
}

#[tokio::test]
async fn only_what_is_finished_or_released_is_left_to_the_server_to_delete() {
    for url in both() {
        let prefix = prefix();
        let store = opened(&url, &prefix).await;
        let left_ms = async |key| raw::<i64>(&url, &["PTTL", &record_key(&prefix, key)]).await;
        let a_minute_after_its_ttl = 3_600_000..=3_660_000;
        let version = idem::record::VersionBytes::new(vec![1]);

        let running = won(&store, &rerun(1, 1)).await;
        assert_eq!(left_ms(1).await, -1, "in progress");
        let mut release = Release {
            holder: running,
            ttl_us: Some(TTL),
            probed: false,
        };
        store.release(&release).await.unwrap();
        assert!(a_minute_after_its_ttl.contains(&left_ms(1).await));
        let again = won(&store, &rerun(1, 2)).await;
        assert_eq!(left_ms(1).await, -1, "it runs again");
        let unknown = MarkUnknown {
            holder: again,
            reason: UnknownReason::Panicked,
            undecided_retry_us: None,
        };
        store.mark_unknown(&unknown).await.unwrap();
        assert_eq!(left_ms(1).await, -1, "unknown");
        store.complete(&answer(again)).await.unwrap();
        assert!(a_minute_after_its_ttl.contains(&left_ms(1).await));

        let forever = won(&store, &rerun(2, 1)).await;
        let complete = Complete {
            ttl_us: None,
            ..answer(forever)
        };
        store.complete(&complete).await.unwrap();
        assert_eq!(left_ms(2).await, -1, "kept for ever");

        let ordered = Reserve {
            version,
            ..rerun(3, 1)
        };
        let ordered_holder = won(&store, &ordered).await;
        store.complete(&answer(ordered_holder)).await.unwrap();
        assert_eq!(left_ms(3).await, -1, "its version makes later ones stale");

        // A released one of an ordered operation keeps its version too.
        let newer = Reserve {
            version: idem::record::VersionBytes::new(vec![2]),
            ..rerun(3, 2)
        };
        release.holder = won(&store, &newer).await;
        store.release(&release).await.unwrap();
        assert_eq!(left_ms(3).await, -1, "released, with a version");
    }
}

/// What a store in memory tells is what the transitions say.
#[tokio::test]
async fn times_are_added_as_exactly_as_in_memory() {
    const NUMBERS: [i64; 8] = [
        0,
        1,
        999_999_999,
        1 << 53,
        (1 << 53) + 1,
        9_222_000_000_123_456_789,
        i64::MAX - 1,
        i64::MAX,
    ];
    let clock = ManualClock::new();
    let redis = RedisStore::options()
        .prefix(prefix())
        .clock(clock.clone())
        .connect(&single())
        .await
        .unwrap();
    let stores: [Box<dyn Store>; 2] = [
        Box::new(redis),
        Box::new(MemoryStore::with_clock(clock.clone())),
    ];
    let mut told = [Vec::new(), Vec::new()];
    for (store, told) in stores.iter().zip(&mut told) {
        let mut renewer = store.renewer().await.unwrap();
        for (key, number) in (0..).zip(NUMBERS) {
            let request = Reserve {
                lease_us: number,
                grace_us: 0,
                ..rerun(key, 1)
            };
            let holder = won(&**store, &request).await;
            let other = rerun(key, 2);
            told.push(
                store
                    .reserve(&Reserve {
                        grace_us: 0,
                        ..other.clone()
                    })
                    .await
                    .unwrap(),
            );
            let lease = Lease {
                holder,
                lease_us: number,
            };
            assert_eq!(renewer.renew(&[lease]).await.unwrap(), [true]);
            told.push(
                store
                    .reserve(&Reserve {
                        grace_us: 0,
                        ..other.clone()
                    })
                    .await
                    .unwrap(),
            );
            let complete = Complete {
                ttl_us: Some(number),
                ..answer(holder)
            };
            assert_eq!(store.complete(&complete).await.unwrap(), Written::Done);
            told.push(store.reserve(&other).await.unwrap());
        }
    }
    assert_eq!(told[0], told[1]);
}

#[tokio::test]
async fn names_that_are_no_names_are_refused() {
    let long = "x".repeat(65);
    for name in [
        "",
        "a b",
        "a{b",
        "a}b",
        "a.b",
        "a*",
        "a\0",
        "größe",
        long.as_str(),
    ] {
        let options = RedisStore::options().prefix(name);
        let error = options.connect(&single()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{name:?}");
    }
}

#[tokio::test]
async fn urls_that_are_no_urls_are_refused() {
    for url in [
        "redis://",
        "redis://:port",
        "redis-cluster://",
        "rediss://127.0.0.1",
    ] {
        let error = RedisStore::connect(url).await.unwrap_err();
        assert_eq!(
            error.kind(),
            StoreErrorKind::Misconfigured,
            "{url}: {error}"
        );
    }
}

#[tokio::test]
async fn a_url_makes_an_engine_twice() {
    for url in both() {
        idem::connect(&url).await.unwrap();
        idem::connect(&url).await.unwrap();
    }
}

#[tokio::test]
async fn clients_of_the_users_serve_as_well() {
    let client = Client::open(single()).unwrap();
    let store = RedisStore::options().prefix(prefix()).from_client(client);
    won(&store.await.unwrap(), &rerun(1, 1)).await;

    let url = cluster();
    let hosts = url.strip_prefix("redis-cluster://").unwrap();
    let nodes = hosts.split(',').map(|host| format!("redis://{host}"));
    let client = ClusterClient::builder(nodes)
        .read_routing_strategy(RandomReplicaStrategy)
        .build()
        .unwrap();
    let store = RedisStore::options().prefix(prefix());
    let store = store.from_cluster_client(client).await.unwrap();
    won(&store, &rerun(1, 1)).await;
}
