//! A lease holds while its body runs, whatever else the renewal thread has to
//! do and however slow the store answers it.

use std::time::Duration;

use idem::{Clock as _, Engine, Error, RecordId, SystemClock, context};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, idle, until};

const GRACE: Duration = Duration::from_millis(100);

async fn engine(store: &Faulty, lease: Duration) -> Engine {
    Engine::builder(store.clone())
        .lease(lease)
        .max_run(Duration::from_secs(60))
        .grace(GRACE)
        .build()
        .await
        .unwrap()
}

/// A body that waits to be let go.
struct Running {
    record: RecordId,
    open: oneshot::Sender<()>,
    call: JoinHandle<Result<u32, Error>>,
}

impl Running {
    async fn start(engine: &Engine) -> Self {
        let (tell, told) = oneshot::channel();
        let (open, gate) = oneshot::channel();
        let call = tokio::spawn(engine.call("renewal.running", &1, DAY).run(async move {
            tell.send(context()?.record_id()).ok();
            gate.await.ok();
            Ok(1)
        }));
        Self {
            record: told.await.unwrap(),
            open,
            call,
        }
    }

    async fn end(self) {
        self.open.send(()).unwrap();
        assert_eq!(self.call.await.unwrap(), Ok(1));
    }
}

fn lease(store: &Faulty, record: &RecordId) -> i64 {
    store.inner.record(record).unwrap().lease_until_us.unwrap()
}

/// Whether a taker would find it lapsed.
fn is_lapsed(store: &Faulty, record: &RecordId) -> bool {
    let until = lease(store, record) + i64::try_from(GRACE.as_micros()).unwrap();
    SystemClock.unix_us() > until
}

/// Looks on until a lease has been renewed so often, and finds it lapsed never.
async fn is_renewed(store: &Faulty, record: &RecordId, times: usize) {
    for _ in 0..times {
        let before = lease(store, record);
        until(|| {
            assert!(!is_lapsed(store, record), "a second body might run now");
            lease(store, record) != before
        })
        .await;
    }
}

#[tokio::test]
async fn many_bodies_that_ask_whether_they_are_held_do_not_starve_another_ones_lease() {
    let slow = vec![Fault::Delay(Duration::from_millis(5)); 10_000];
    let store = Faulty::default().on_renew(slow);
    let engine = engine(&store, Duration::from_millis(600)).await;
    let quiet = Running::start(&engine).await;
    let enough = Runs::default();
    let busy: Vec<_> = (0..20)
        .map(|key| {
            let enough = enough.clone();
            let body = async move {
                let context = context()?;
                while enough.count() == 0 {
                    context.ensure_held().await?;
                }
                Ok::<_, Error>(())
            };
            tokio::spawn(engine.call("renewal.busy", &key, DAY).run(body))
        })
        .collect();
    until(|| engine.stats().attempts == 21).await;
    is_renewed(&store, &quiet.record, 4).await;
    quiet.end().await;
    enough.add();
    for call in busy {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn one_renewal_that_hangs_does_not_outlast_a_short_lease() {
    let store = Faulty::default().on_renew([Fault::Hang]);
    let engine = engine(&store, Duration::from_millis(200)).await;
    let running = Running::start(&engine).await;
    is_renewed(&store, &running.record, 3).await;
    running.end().await;
}

#[tokio::test]
async fn a_renewal_that_is_refused_is_tried_again_before_the_lease_is_over() {
    let store = Faulty::default().on_renew([Fault::Refuse, Fault::Refuse]);
    let engine = engine(&store, Duration::from_millis(300)).await;
    let running = Running::start(&engine).await;
    is_renewed(&store, &running.record, 2).await;
    running.end().await;
}

#[tokio::test]
async fn a_farewell_that_hangs_does_not_hold_renewals_up() {
    let store = Faulty::default().on_farewell(vec![Fault::Hang; 100]);
    let engine = engine(&store, Duration::from_millis(600)).await;
    let running = Running::start(&engine).await;
    let (start, started) = oneshot::channel();
    let gone = tokio::spawn({
        let engine = engine.clone();
        async move {
            let body = async move {
                start.send(()).ok();
                std::future::pending::<Result<(), Error>>().await
            };
            engine
                .call("renewal.gone", &1, DAY)
                .run_borrowed(body)
                .await
        }
    });
    started.await.unwrap();
    gone.abort();
    until(|| store.farewells() != 0).await;
    is_renewed(&store, &running.record, 4).await;
    running.end().await;
}

#[tokio::test]
async fn after_a_body_longer_than_max_run_the_lease_is_renewed_again_until_its_end_is_told() {
    let store = Faulty::default().on_end(vec![Fault::Refuse; 1_000]);
    let engine = Engine::builder(store.clone())
        .lease(Duration::from_millis(300))
        .max_run(Duration::from_millis(300))
        .grace(GRACE)
        .store_timeout(Duration::from_millis(50))
        .reserve_timeout(Duration::from_millis(50))
        .build()
        .await
        .unwrap();
    let running = Running::start(&engine).await;
    let record = running.record;
    // Renewed no longer, and nobody is there to take over.
    until(|| is_lapsed(&store, &record)).await;
    let before = lease(&store, &record);
    running.end().await;
    until(|| lease(&store, &record) != before).await;
    is_renewed(&store, &record, 2).await;
    store.heal();
    idle(&engine).await;
    let call = engine.call("renewal.running", &1, DAY);
    assert_eq!(call.run(async { Ok::<u32, Error>(2) }).await, Ok(1));
}
