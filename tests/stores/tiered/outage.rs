//! A front that is down, silent, or forgets.

use std::time::Duration;

use idem::store::{Reserved, Store as _, Written};
use tokio::time::Instant;

use super::{SECOND, TTL, Tiers, request};

#[tokio::test]
async fn with_the_front_down_calls_go_on_and_it_is_tried_once_a_second() {
    let t = Tiers::new().await;
    t.filled(1, Some(TTL)).await;
    t.front.fails();
    let asked = t.front.asked().len();
    for step in 0..50_i64 {
        // Five seconds, ten calls in each.
        let claim = 3 + u8::try_from(step).unwrap();
        let reply = t.reserve(&request(1, claim)).await;
        assert!(matches!(reply, Reserved::Completed { .. }), "{reply:?}");
        t.advance(SECOND / 10);
    }
    assert_eq!(t.front.asked().len() - asked, 5);
    let holder = t.win(&request(2, 1)).await;
    assert_eq!(t.complete(holder, None).await, Ok(Written::Done));
    // Once it answers again it is used again.
    t.front.is_up();
    t.advance(2 * SECOND);
    let before = t.back.reserves();
    t.reserve(&request(1, 100)).await;
    t.reserve(&request(1, 101)).await;
    assert_eq!(t.back.reserves(), before, "its entry outlived the outage");
}

#[tokio::test(start_paused = true)]
async fn a_silent_front_costs_a_call_a_tenth_of_a_second_and_the_next_ones_nothing() {
    let t = Tiers::new().await;
    t.filled(1, Some(TTL)).await;
    t.front.hangs();
    let started = Instant::now();
    let reply = t.reserve(&request(1, 3)).await;
    assert!(matches!(reply, Reserved::Completed { .. }), "{reply:?}");
    let took = started.elapsed();
    assert!(
        took >= Duration::from_millis(100) && took < Duration::from_millis(110),
        "{took:?}"
    );
    let started = Instant::now();
    for claim in 4..100 {
        t.reserve(&request(1, claim)).await;
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert_eq!(
        t.front
            .asked()
            .iter()
            .filter(|step| **step == "get")
            .count(),
        3
    );
}

#[tokio::test(start_paused = true)]
async fn while_one_call_tries_a_silent_front_the_others_do_not_wait_for_it() {
    let t = Tiers::new().await;
    t.front.hangs();
    t.reserve(&request(1, 1)).await;
    t.advance(2 * SECOND);
    let started = Instant::now();
    let replies = [2, 3, 4, 5].map(|claim| {
        let (store, request) = (t.store.clone(), request(1, claim));
        tokio::spawn(async move {
            store.reserve(&request).await.unwrap();
            started.elapsed()
        })
    });
    let mut waited = 0;
    for reply in replies {
        waited += usize::from(!reply.await.unwrap().is_zero());
    }
    assert_eq!(waited, 1);
}

#[tokio::test]
async fn the_front_is_not_told_what_the_store_behind_has_not_acknowledged() {
    let t = Tiers::new().await;
    let holder = t.win(&request(1, 1)).await;
    t.reserve(&request(1, 2)).await;
    t.back.loses_replies(true);
    let asked = t.front.asked().len();
    assert!(t.complete(holder, None).await.is_err());
    assert_eq!(t.front.asked().len(), asked);
    t.back.loses_replies(false);
    assert_eq!(t.complete(holder, None).await, Ok(Written::AlreadyDone));
    assert_eq!(t.front.asked()[asked..], ["clear_hint"]);
}

#[tokio::test]
async fn an_emptied_front_is_filled_again() {
    let t = Tiers::new().await;
    let first = t.filled(1, Some(TTL)).await;
    t.front.inner.flush();
    let asked = t.back.reserves();
    for claim in 3..10 {
        assert_eq!(t.reserve(&request(1, claim)).await, first);
    }
    assert_eq!(t.back.reserves(), asked + 1);
}
