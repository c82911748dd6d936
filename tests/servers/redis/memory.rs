//! A server without memory: nothing begins, and everything ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::record::UnknownReason;
use idem::store::tiered::Front as _;
use idem::store::{
    GiveBack, Lease, MarkUnknown, Meta, RedisStore, Release, Reserved, Store as _, Written,
};
use idem::{Engine, Error, StoreErrorKind};

use super::server::Server;
use super::{LEASE, TTL, answer, rerun, won};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_body_begins_and_one_that_ran_is_recorded_and_replayed() {
    let server = Arc::new(Server::start(&[]));
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let engine = Engine::builder(store)
        .store_timeout(Duration::from_millis(200))
        .reserve_timeout(Duration::from_millis(500))
        .build()
        .await
        .unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let call = |key: u8, exhaust: bool| {
        let (runs, server) = (Arc::clone(&runs), Arc::clone(&server));
        let call = engine.call("memory", &key, Duration::from_secs(60));
        call.run(async move {
            runs.fetch_add(1, Ordering::SeqCst);
            if exhaust {
                server.set("maxmemory", "1").await;
            }
            Ok::<_, Error>(key)
        })
    };
    assert_eq!(call(1, true).await.unwrap(), 1, "it was recorded");
    for _ in 0..2 {
        assert_eq!(call(1, false).await.unwrap(), 1, "it is replayed");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let Err(Error::Store(error)) = call(2, false).await else {
        panic!("it began");
    };
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
    assert_eq!(runs.load(Ordering::SeqCst), 1, "nothing ran");

    server.set("maxmemory", "0").await;
    assert_eq!(call(2, false).await.unwrap(), 2);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn every_end_of_an_attempt_and_every_renewal_needs_no_memory() {
    let server = Server::start(&[]);
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let mut holders = Vec::new();
    for key in 0..5 {
        holders.push(won(&store, &rerun(key, 1)).await);
    }
    server.set("maxmemory", "1").await;

    let refused = store.reserve(&rerun(9, 1)).await.unwrap_err();
    assert_eq!(refused.code(), Some("OOM"));
    assert_eq!(refused.kind(), StoreErrorKind::Transient);
    assert!(!refused.is_ambiguous());

    let mut renewer = store.renewer().await.unwrap();
    let leases: Vec<_> = holders
        .iter()
        .map(|&holder| Lease {
            holder,
            lease_us: LEASE,
        })
        .collect();
    assert_eq!(renewer.renew(&leases).await.unwrap(), [true; 5]);
    // What needs no write is told.
    let told = store.reserve(&rerun(0, 2)).await.unwrap();
    assert!(matches!(told, Reserved::InProgress { .. }), "{told:?}");

    let written = store.complete(&answer(holders[0])).await.unwrap();
    assert_eq!(written, Written::Done);
    let told = store.reserve(&rerun(0, 2)).await.unwrap();
    assert!(matches!(told, Reserved::Completed { .. }), "{told:?}");
    let again = store.complete(&answer(holders[0])).await.unwrap();
    assert_eq!(again, Written::AlreadyDone);

    let release = Release {
        holder: holders[1],
        ttl_us: Some(TTL),
        probed: false,
    };
    assert_eq!(store.release(&release).await.unwrap(), Written::Done);
    let unknown = |at: usize| MarkUnknown {
        holder: holders[at],
        reason: UnknownReason::Panicked,
        undecided_retry_us: None,
    };
    assert_eq!(
        store.mark_unknown(&unknown(2)).await.unwrap(),
        Written::Done
    );
    assert_eq!(
        renewer.mark_unknown(&unknown(3)).await.unwrap(),
        Written::Done
    );
    let back = GiveBack {
        id: holders[4].id,
        claim: holders[4].claim,
        ttl_us: Some(TTL),
    };
    assert_eq!(renewer.give_back(&back).await.unwrap(), Written::Done);

    // What is released or unknown could begin again, and does not.
    for key in 1..5 {
        let refused = store.reserve(&rerun(key, 2)).await.unwrap_err();
        assert_eq!(refused.code(), Some("OOM"), "{key}");
    }
}

#[tokio::test]
async fn an_engine_starts_and_an_operator_blocks_without_memory() {
    let server = Server::start(&[]);
    let store = RedisStore::connect(&server.url()).await.unwrap();
    server.set("maxmemory", "1").await;
    let meta = Meta {
        format: "idem/1".to_owned(),
        instance: [1; 16],
        secret_check: [0; 32],
    };
    assert_eq!(store.pin(&meta).await.unwrap(), meta);
    let ttl = Duration::from_secs(60);
    let refused = store.fill("key", b"A", ttl).await.unwrap_err();
    assert_eq!(refused.code(), Some("OOM"));
    store.block("key", ttl).await.unwrap();
    let entry = store.get("key").await.unwrap();
    assert_eq!(entry.as_deref(), Some(b"B".as_slice()));
}
