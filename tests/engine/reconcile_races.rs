//! Asking the outside world without a caller, while others do something to the
//! same record: other passes, callers, old holders, operators.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem::admin::{Filter, Reconciled, Settled};
use idem::record::Standing;
use idem::store::{MemoryStore, Store};
use idem::testing::{ManualClock, Testbed, assert_replayed};
use idem::{Engine, Error, OnUnknown, Recovered};
use tokio::sync::{Notify, oneshot};

use crate::faulty::{Fault, Faulty};
use crate::reconcile::{CHARGE, Provider, charge, fail, record, summary, unknown};
use crate::{DAY, Runs, idle, until};

#[tokio::test]
async fn of_two_processes_one_asks_about_each_record() {
    let t = Testbed::new().await;
    let other = t.another_process().await;
    let mut provider = Provider::default();
    for order in 0..40 {
        unknown(&t, order).await;
        provider = provider.says(order, Recovered::Done(1));
    }
    let pass = async |engine: &Engine| {
        let pass = engine.reconcile(CHARGE, async |unknown| {
            tokio::task::yield_now().await;
            provider.find(&unknown)
        });
        pass.run().await.unwrap()
    };
    let (one, two) = tokio::join!(pass(t.engine()), pass(other.engine()));
    assert_eq!(one.done + two.done, 40, "{one:?} {two:?}");
    assert!(
        provider
            .asked
            .lock()
            .unwrap()
            .values()
            .all(|asked| *asked == 1)
    );
    assert_eq!(provider.asked(), 40);
}

#[tokio::test]
async fn callers_wait_while_it_asks_and_get_what_it_finds() {
    let t = Testbed::new().await;
    let other = t.another_process().await;
    unknown(&t, 1).await;
    let (open, gate) = oneshot::channel();
    let (gate, asked) = (Mutex::new(Some(gate)), Notify::new());
    let pass = t.engine().reconcile(CHARGE, async |_| {
        let gate = gate.lock().unwrap().take();
        asked.notify_one();
        gate.unwrap().await.ok();
        Ok::<_, Error>(Recovered::Done(7_u64))
    });
    let meanwhile = async {
        asked.notified().await;
        // The lease is renewed while the probe runs.
        t.clock().advance(DAY);
        let calls = async {
            tokio::join!(
                t.scope(charge(1, 4_200, false)),
                other.scope(charge(1, 4_200, false))
            )
        };
        let opened = async {
            until(|| t.engine().stats().waiters + other.engine().stats().waiters == 2).await;
            open.send(()).unwrap();
        };
        tokio::join!(calls, opened).0
    };
    let (reconciled, answers) = tokio::join!(pass.run(), meanwhile);
    assert_eq!(summary(reconciled.unwrap()), (1, 0, 0, 0));
    assert_eq!(answers, (Ok(7), Ok(7)));
    assert_eq!(t.runs(CHARGE) + other.runs(CHARGE), 1);
}

/// Engines on one store, with leases of an hour of the store's time, which only
/// the manual clock moves: as after a pause, nobody notices in time.
struct Paused {
    clock: ManualClock,
    memory: MemoryStore,
}

const LEASE: Duration = Duration::from_secs(3_600);

impl Paused {
    fn new() -> Self {
        let clock = ManualClock::new();
        let memory = MemoryStore::with_clock(clock.clone());
        Self { clock, memory }
    }

    async fn engine(&self, store: impl Store) -> Engine {
        let builder = Engine::builder(store).lease(LEASE).max_run(LEASE);
        builder.grace(Duration::ZERO).build().await.unwrap()
    }
}

#[tokio::test]
async fn an_old_holder_that_wakes_late_is_refused_and_gets_what_was_found() {
    let paused = Paused::new();
    let (slow, quick) = (
        paused.engine(paused.memory.clone()).await,
        paused.engine(paused.memory.clone()).await,
    );
    let (open, gate) = oneshot::channel::<()>();
    let (start, started) = oneshot::channel();
    let call = slow.call(CHARGE, &1, DAY).scope("shop").label("order 1");
    let zombie = tokio::spawn(call.run(async {
        start.send(()).unwrap();
        gate.await.ok();
        Ok::<_, Error>(1_u64)
    }));
    started.await.unwrap();
    paused.clock.advance(LEASE * 2);
    let provider = Provider::default().says(1, Recovered::Done(7));
    assert_eq!(summary(provider.pass(&quick).await), (1, 0, 0, 0));
    open.send(()).unwrap();
    assert_eq!(zombie.await.unwrap(), Ok(7), "never its own value");
}

#[tokio::test]
async fn a_probe_that_is_paused_past_its_lease_is_refused_once_another_has_asked() {
    let paused = Paused::new();
    let (slow, quick) = (
        paused.engine(paused.memory.clone()).await,
        paused.engine(paused.memory.clone()).await,
    );
    fail(&slow, 1).await;
    for late in [Recovered::Done(1), Recovered::NotDone, Recovered::Unknown] {
        let provider = Provider::default().says(1, Recovered::Done(7));
        let pass = slow.reconcile(CHARGE, async |_| {
            paused.clock.advance(LEASE * 2);
            assert_eq!(summary(provider.pass(&quick).await), (1, 0, 0, 0));
            Ok::<_, Error>(late.clone())
        });
        assert_eq!(summary(pass.run().await.unwrap()), (0, 0, 0, 1), "{late:?}");
        assert_eq!(slow.scope(charge(1, 4_200, false)).await, Ok(7));
        let audit = record(&slow, 1).audit().await.unwrap();
        assert_eq!(audit.last().unwrap().was, idem::record::State::InProgress);
        assert_eq!(
            record(&slow, 1).forget("test", "next").await,
            Ok(Settled::Done)
        );
        fail(&slow, 1).await;
    }
}

#[tokio::test]
async fn a_probe_that_is_paused_past_its_lease_takes_nothing_from_who_asks_now() {
    let paused = Paused::new();
    let (slow, quick) = (
        paused.engine(paused.memory.clone()).await,
        paused.engine(paused.memory.clone()).await,
    );
    fail(&slow, 1).await;
    let (asked, go_on) = (Notify::new(), Notify::new());
    let late = slow.reconcile(CHARGE, async |_| {
        paused.clock.advance(LEASE * 2);
        go_on.notify_one();
        asked.notified().await;
        Ok::<_, Error>(Recovered::Done(1_u64))
    });
    let late = async {
        let ended = late.run().await.unwrap();
        go_on.notify_one();
        ended
    };
    let now = async {
        go_on.notified().await;
        let pass = quick.reconcile(CHARGE, async |_| {
            asked.notify_one();
            go_on.notified().await;
            Ok::<_, Error>(Recovered::Done(7_u64))
        });
        pass.run().await.unwrap()
    };
    let (late, now) = tokio::join!(late, now);
    assert_eq!(summary(late), (0, 0, 0, 1));
    assert_eq!(summary(now), (1, 0, 0, 0));
    assert_eq!(slow.scope(charge(1, 4_200, false)).await, Ok(7));
}

#[tokio::test]
async fn what_an_operator_settles_meanwhile_stays() {
    let t = Testbed::new().await;
    unknown(&t, 1).await;
    let pass = t.engine().reconcile(CHARGE, async |_| {
        let record = record(t.engine(), 1);
        let answer = Ok::<_, Error>(5_u64);
        let polite = record.resolve(answer.clone(), "ada", "charged").await;
        assert_eq!(polite, Ok(Settled::Running));
        let forced = record.force().resolve(answer, "ada", "charged").await;
        assert_eq!(forced, Ok(Settled::Done));
        Ok::<_, Error>(Recovered::Done(7_u64))
    });
    assert_eq!(summary(pass.run().await.unwrap()), (0, 0, 0, 1));
    assert_eq!(assert_replayed!(t.scope(charge(1, 4_200, false))), Ok(5));
    let audit = record(t.engine(), 1).audit().await.unwrap();
    assert_eq!(audit.len(), 1);
}

/// A pass whose reservation waits in front of the store, until something has
/// happened to the record that it wants.
async fn overtaken<F: Future>(meanwhile: impl FnOnce(Engine) -> F) -> (Reconciled, usize, Engine) {
    let memory = MemoryStore::new();
    let hold = Arc::new(Notify::new());
    let other = crate::engine(memory.clone()).await;
    fail(&other, 1).await;
    let store = Faulty::behind(memory).on_reserve([Fault::HoldUntil(Arc::clone(&hold))]);
    let engine = crate::engine(store.clone()).await;
    let probes = Runs::default();
    let pass = engine.reconcile(CHARGE, async |_| {
        probes.add();
        Ok::<_, Error>(Recovered::Done(7_u64))
    });
    let between = async {
        until(|| store.reserves() == 1).await;
        meanwhile(other.clone()).await;
        hold.notify_one();
    };
    let (reconciled, ()) = tokio::join!(pass.run(), between);
    idle(&engine).await;
    // The renewal thread gives it back.
    let running = async || {
        let filter = Filter::new(Standing::InProgress);
        let running = other.admin().unwrap().list(&filter).await.unwrap();
        !running.records.is_empty()
    };
    while running().await {
        tokio::task::yield_now().await;
    }
    (reconciled.unwrap(), probes.count(), other)
}

#[tokio::test]
async fn a_page_that_is_old_is_not_acted_on() {
    let store = Faulty::default();
    let engine = crate::engine(store.clone()).await;
    for order in 1..=50 {
        fail(&engine, order).await;
    }
    // While the first is asked about, somebody releases all others.
    let probes = Runs::default();
    let before = store.reserves();
    let pass = engine.reconcile(CHARGE, async |unknown| {
        probes.add();
        for order in 1..=50 {
            let record = record(&engine, order);
            if record.id()? != unknown.record_id() {
                assert_eq!(record.release("ada", "not sent").await, Ok(Settled::Done));
            }
        }
        Ok::<_, Error>(Recovered::Done(1_u64))
    });
    let (done, not_done, unknown, skipped) = summary(pass.run().await.unwrap());
    assert_eq!((done, not_done, unknown), (1, 0, 0));
    // Those behind the place where it began are on its first page.
    assert!(skipped <= 49);
    assert_eq!((probes.count(), store.reserves() - before), (1, 1));
}

#[tokio::test]
async fn a_caller_that_takes_over_first_has_it() {
    let (pass, probes, engine) = overtaken(async |engine: Engine| {
        let call = engine.call(CHARGE, &1, DAY).scope("shop");
        let call = call.payload(&4_200_u64).on_unknown(OnUnknown::Rerun);
        assert_eq!(call.run(async { Ok::<_, Error>(9_u64) }).await, Ok(9));
    })
    .await;
    assert_eq!((summary(pass), probes), ((0, 0, 0, 1), 0));
    assert_eq!(engine.scope(charge(1, 4_200, false)).await, Ok(9));
}

#[tokio::test]
async fn what_was_released_meanwhile_is_given_back_to_the_next_caller() {
    let (pass, probes, engine) = overtaken(async |engine: Engine| {
        let released = record(&engine, 1).release("ada", "not sent").await;
        assert_eq!(released, Ok(Settled::Done));
    })
    .await;
    assert_eq!((summary(pass), probes), ((0, 0, 0, 1), 0), "nothing to ask");
    assert_eq!(engine.scope(charge(1, 8, false)).await, Ok(8));
}

#[tokio::test]
async fn what_was_forgotten_meanwhile_is_given_back_to_the_next_caller() {
    let (pass, probes, engine) = overtaken(async |engine: Engine| {
        let forgotten = record(&engine, 1).forget("ada", "a test").await;
        assert_eq!(forgotten, Ok(Settled::Done));
    })
    .await;
    assert_eq!((summary(pass), probes), ((0, 0, 0, 1), 0));
    assert_eq!(engine.scope(charge(1, 8, false)).await, Ok(8));
}
