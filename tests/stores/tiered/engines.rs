//! Two engines that share a front and a store, with the front emptied around
//! every step of theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::store::tiered::MemoryFront;
use idem::store::{MemoryStore, TieredStore};
use idem::{Engine, Error};
use tokio::sync::oneshot;

use super::fakes::Fake;

const DAY: Duration = Duration::from_secs(86_400);

/// One call that runs while another waits, and a replay on each side. Returns
/// how many steps the front was asked for.
async fn calls(front: &Fake) -> usize {
    let memory = MemoryStore::new();
    let engine = async || {
        let options = TieredStore::options(front.clone(), memory.clone());
        let store = options.hint(Duration::from_millis(20)).build();
        Engine::builder(store).build().await.unwrap()
    };
    let (one, other) = (engine().await, engine().await);
    let runs = Arc::new(AtomicUsize::new(0));
    let (open, gate) = oneshot::channel::<()>();
    let (began, running) = oneshot::channel::<()>();
    let first = tokio::spawn(one.call("tiered.flush", &1, DAY).run({
        let runs = Arc::clone(&runs);
        async move {
            began.send(()).unwrap();
            gate.await.unwrap();
            Ok::<_, Error>(runs.fetch_add(1, Ordering::SeqCst) + 1)
        }
    }));
    running.await.unwrap();
    let again = |engine: &Engine| {
        let runs = Arc::clone(&runs);
        engine
            .call("tiered.flush", &1, DAY)
            .run(async move { Ok::<_, Error>(runs.fetch_add(1, Ordering::SeqCst) + 1) })
    };
    let waiting = tokio::spawn(again(&other));
    while other.stats().waiters == 0 {
        tokio::task::yield_now().await;
    }
    open.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(1));
    assert_eq!(waiting.await.unwrap(), Ok(1));
    for engine in [&one, &other, &one, &other] {
        assert_eq!(again(engine).await, Ok(1));
    }
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    front.asked().len()
}

#[tokio::test]
async fn emptying_the_front_at_any_step_changes_no_answer() {
    let steps = calls(&Fake::on(MemoryFront::new())).await;
    assert!(steps > 8, "the front was asked only {steps} times");
    // A step that fails to hit makes a few more.
    for at in 1..steps + 4 {
        let front = Fake::on(MemoryFront::new());
        front.flushes_at(at);
        calls(&front).await;
    }
}

#[tokio::test]
async fn without_its_front_every_call_has_its_answer() {
    let front = Fake::on(MemoryFront::new());
    front.fails();
    calls(&front).await;
    front.hangs();
    calls(&front).await;
}
