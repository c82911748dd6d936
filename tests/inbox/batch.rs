//! A batch gives every item its result.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idem::testing::Testbed;
use idem::{Error, idempotent};
use tokio::sync::{Barrier, watch};

use crate::Gate;

#[idempotent(name = "batch.tenfold", key = item, ttl = "1h", on_error = store)]
async fn tenfold(item: u32) -> Result<u32, Error> {
    match item {
        13 => Err(Error::InvalidKey {
            reason: "the thirteenth".to_owned(),
        }),
        _ => Ok(item * 10),
    }
}

#[tokio::test]
async fn results_come_in_the_order_of_the_items_and_one_failure_stops_nobody() {
    let t = Testbed::new().await;
    let results = t.scope(async { idem::batch(0..40, tenfold).await }).await;
    assert_eq!(results.len(), 40);
    for (item, result) in (0..).zip(&results) {
        match item {
            13 => assert!(result.is_err()),
            item => assert_eq!(*result, Ok(item * 10)),
        }
    }
    assert_eq!(t.runs("batch.tenfold"), 40);
    let again = t.scope(async { idem::batch(0..40, tenfold).await }).await;
    assert_eq!(again, results);
    assert_eq!(t.runs("batch.tenfold"), 40, "all were replayed");
}

#[tokio::test]
async fn items_that_end_the_other_way_round_keep_their_places() {
    let (ended, is_ended) = watch::channel(5_usize);
    let results = idem::batch(0..5, |item| {
        let (ended, mut is_ended) = (ended.clone(), is_ended.clone());
        async move {
            // The one behind it first.
            is_ended.wait_for(|last| *last == item + 1).await.unwrap();
            ended.send_replace(item);
            item
        }
    });
    assert_eq!(results.await, [0, 1, 2, 3, 4]);
    assert!(idem::batch([0; 0], async |item: i32| item).await.is_empty());
}

/// Says how many ran at once at most, if each batch of `barrier` waits for all.
async fn most_at_once(at_once: Option<usize>, barrier: usize) -> usize {
    let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let barrier = Barrier::new(barrier);
    let batch = idem::batch(0..48, async |_| {
        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(now, Ordering::SeqCst);
        barrier.wait().await;
        running.fetch_sub(1, Ordering::SeqCst);
    });
    match at_once {
        Some(at_once) => batch.at_once(at_once).await.len(),
        None => batch.await.len(),
    };
    most.into_inner()
}

#[tokio::test]
async fn so_many_run_at_once_as_it_says_and_no_more() {
    assert_eq!(most_at_once(None, 16).await, 16);
    assert_eq!(most_at_once(Some(3), 3).await, 3);
    assert_eq!(most_at_once(Some(0), 1).await, 1);
    assert_eq!(most_at_once(Some(10_000), 48).await, 48);
}

#[tokio::test]
async fn items_are_asked_for_when_there_is_room() {
    let asked = AtomicUsize::new(0);
    let gate = Gate::closed();
    let items = (0..10).inspect(|_| {
        asked.fetch_add(1, Ordering::SeqCst);
    });
    let batch = idem::batch(items, async |item| {
        gate.pass().await;
        item
    });
    let mut running = std::pin::pin!(batch.at_once(2).into_future());
    for expected in [2, 3, 4] {
        tokio::select! {
            biased;
            all = &mut running => panic!("{all:?}"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(asked.load(Ordering::SeqCst), expected);
        gate.open();
    }
    (0..10).for_each(|_| gate.open());
    assert_eq!(running.await, (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn two_items_of_one_key_are_one_run() {
    let t = Testbed::new().await;
    let results = t.scope(async { idem::batch([7; 20], tenfold).await }).await;
    assert_eq!(results, vec![Ok(70); 20]);
    assert_eq!(t.runs("batch.tenfold"), 1);
}

#[tokio::test]
async fn a_panic_goes_on_after_all_others_have_ended() {
    let ended = Arc::new(AtomicUsize::new(0));
    let batch = tokio::spawn({
        let ended = Arc::clone(&ended);
        async move {
            idem::batch(0..20, |item| {
                assert_ne!(item, 5, "making the sixth call panics");
                let ended = Arc::clone(&ended);
                async move {
                    tokio::task::yield_now().await;
                    assert_ne!(item, 2, "the third call panics");
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            })
            .at_once(4)
            .await
        }
    });
    let panic = batch.await.unwrap_err().into_panic();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("the third call panics"), "{text}");
    assert_eq!(ended.load(Ordering::SeqCst), 18);
}

#[idempotent(name = "batch.held", key = item, ttl = "1h", on_in_progress = wait("30s"))]
async fn held(gate: Gate, item: u32) -> Result<u32, Error> {
    gate.pass().await;
    Ok(item)
}

#[tokio::test]
async fn a_dropped_batch_begins_nothing_more_and_what_runs_is_recorded() {
    let t = Testbed::new().await;
    let gate = Gate::closed();
    let batch = async {
        idem::batch(0..10, |item| held(gate.clone(), item))
            .at_once(1)
            .await
    };
    tokio::select! {
        biased;
        all = t.scope(batch) => panic!("{all:?}"),
        () = gate.began.notified() => {}
    }
    gate.open();
    while t.engine().stats().tasks > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(t.runs("batch.held"), 1);
    (0..9).for_each(|_| gate.open());
    let batch = async { idem::batch(0..10, |item| held(gate.clone(), item)).await };
    let all = t.scope(batch).await;
    assert_eq!(all, (0..10).map(Ok).collect::<Vec<_>>());
    assert_eq!(t.runs("batch.held"), 10, "the first was replayed");
}
