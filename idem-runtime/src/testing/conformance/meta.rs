//! The first engine's settings stand, whoever comes later.

use super::bench::{Bench, done};
use crate::store::{Meta, Store};
use crate::sync::Arc;

super::topic!("meta":
    the_first_meta_stands,
    a_meta_pinned_twice_is_the_same,
    metas_pinned_at_once_agree,
    records_and_meta_do_not_mix,
    a_store_says_what_it_is,
);

fn meta(number: u8) -> Meta {
    Meta {
        format: format!("idem/{number}"),
        instance: [number; 16],
        secret_check: [number; 32],
    }
}

async fn the_first_meta_stands(b: &Bench) {
    assert_eq!(done(b.store.pin(&meta(1)).await), meta(1), "nothing stood");
    assert_eq!(
        done(b.store.pin(&meta(2)).await),
        meta(1),
        "an engine that differs must be told so, and change nothing"
    );
    assert_eq!(done(b.another().await.pin(&meta(3)).await), meta(1));
}

async fn a_meta_pinned_twice_is_the_same(b: &Bench) {
    assert_eq!(done(b.store.pin(&meta(1)).await), meta(1));
    assert_eq!(done(b.store.pin(&meta(1)).await), meta(1));
}

async fn metas_pinned_at_once_agree(b: &Bench) {
    // All are open before one begins: opening takes longer than pinning.
    let mut stores = Vec::new();
    for number in 1..=8 {
        stores.push((number, b.another().await));
    }
    let pins: Vec<_> = stores
        .into_iter()
        .map(|(number, store)| tokio::spawn(async move { done(store.pin(&meta(number)).await) }))
        .collect();
    let first = done(b.store.pin(&meta(9)).await);
    for pin in pins {
        let pinned = pin.await.ok();
        assert_eq!(
            pinned,
            Some(first.clone()),
            "two engines believe to be first"
        );
    }
}

async fn records_and_meta_do_not_mix(b: &Bench) {
    let attempt = b.take(0).await;
    assert_eq!(done(b.store.pin(&meta(0)).await), meta(0));
    assert!(b.renew(attempt.holder).await, "a pin touched a record");
}

async fn a_store_says_what_it_is(b: &Bench) {
    let kind = b.store.kind();
    assert!(!kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_graphic()));
    // What it finds depends on the machine; that it answers does not.
    drop(done(b.store.check().await));
    let again: Arc<dyn Store> = b.another().await;
    assert_eq!(again.kind(), kind);
}
