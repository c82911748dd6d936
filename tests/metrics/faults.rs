//! What is counted when the store fails, callers leave and engines shut down.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use idem::record::{Note, Standing};
use idem::store::{Scan, Settle, StoreAdmin as _, Written};
use idem::telemetry::names;
use idem::transition::Settlement;
use idem::{Engine, Error, OnUnknown, Recovered, on_error};
use tokio::sync::{Notify, oneshot};

use crate::faulty::{Fault, Faulty};
use crate::gauges::until;
use crate::recorder::Recorded;
use crate::{DAY, alone};

async fn build(store: &Faulty) -> Engine {
    let builder = Engine::builder(store.clone())
        .lease(Duration::from_millis(200))
        .store_timeout(Duration::from_millis(20))
        .reserve_timeout(Duration::from_millis(40));
    builder.build().await.unwrap()
}

/// The counters of one operation.
#[derive(Clone, Copy)]
struct Of(&'static str);

impl Of {
    fn count(self, name: &str, label: &str, value: &str) -> u64 {
        let labels = [("operation", self.0), (label, value)];
        Recorded::start().count(name, &labels)
    }

    fn calls(self, outcome: &str) -> u64 {
        self.count(names::CALLS, "outcome", outcome)
    }

    fn ends(self, end: &str) -> u64 {
        self.count(names::ATTEMPTS, "end", end)
    }

    fn all(self, name: &str) -> u64 {
        Recorded::start().count(name, &[("operation", self.0)])
    }
}

fn answers() -> Ready<Result<u32, Error>> {
    ready(Ok(1))
}

#[tokio::test]
async fn what_the_store_refuses_is_counted_by_step_and_kind() {
    let _turn = alone().await;
    let recorded = Recorded::start();
    let store = Faulty::default();
    let engine = build(&store).await;
    let failed = |step, kind| {
        let labels = [("step", step), ("kind", kind)];
        recorded.count(names::STORE_ERRORS, &labels)
    };
    let before = [
        failed("reserve", "permanent"),
        failed("complete", "permanent"),
    ];
    let of = Of("faults.refused");
    let call = || engine.call(of.0, &1, DAY);

    drop(store.clone().on_reserve([Fault::Break]));
    call().run(answers()).await.unwrap_err();
    assert_eq!((of.calls("store"), of.all(names::RESERVATIONS)), (1, 0));
    assert_eq!(failed("reserve", "permanent") - before[0], 1);

    drop(store.clone().on_end([Fault::Break]));
    assert_eq!(
        call().run(answers()).await,
        Ok(1),
        "its caller has the answer"
    );
    assert_eq!((of.calls("executed"), of.ends("not_recorded")), (1, 1));
    assert_eq!(failed("complete", "permanent") - before[1], 1);
    assert_eq!(of.all(names::ATTEMPTS), of.all(names::RESERVATIONS));
}

#[tokio::test]
async fn an_end_that_is_told_in_the_background_is_counted_when_it_is_told() {
    let _turn = alone().await;
    Recorded::start();
    let store = Faulty::default().on_end(vec![Fault::Refuse; 6]);
    let engine = build(&store).await;
    let of = Of("faults.background");
    let call = engine.call(of.0, &1, DAY).run_detailed(answers());
    let (answer, outcome) = call.await;
    assert_eq!((answer, outcome.recorded), (Ok(1), false));
    assert_eq!(of.all(names::BACKGROUND), 1);
    assert_eq!((of.calls("executed"), of.ends("completed")), (1, 0));
    store.heal();
    until(|| of.ends("completed") == 1).await;
}

#[tokio::test]
async fn renewals_that_fail_and_leases_that_are_lost_are_counted() {
    let _turn = alone().await;
    let recorded = Recorded::start();
    let store = Faulty::default().on_renew([Fault::Refuse]);
    let engine = build(&store).await;
    let before = recorded.count(names::RENEWAL_FAILURES, &[]);
    let lags = recorded.samples(names::RENEWAL_LAG).len();
    let of = Of("faults.lost");
    let (open, gate) = oneshot::channel::<()>();
    let running = tokio::spawn(engine.call(of.0, &1, DAY).run(async {
        gate.await.ok();
        answers().await
    }));
    until(|| recorded.count(names::RENEWAL_FAILURES, &[]) > before).await;
    until(|| recorded.samples(names::RENEWAL_LAG).len() > lags + 1).await;
    assert_eq!(of.all(names::LEASES_LOST), 0);
    // Somebody forgets the record.
    forget(&store).await;
    until(|| of.all(names::LEASES_LOST) == 1).await;
    open.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Err(Error::Superseded));
    assert_eq!((of.calls("superseded"), of.ends("superseded")), (1, 1));
}

async fn forget(store: &Faulty) {
    let scan = Scan {
        standing: Standing::InProgress,
        operation: None,
        grace_us: 0,
        after: None,
        limit: 1,
    };
    let page = store.inner.scan(&scan).await.unwrap();
    let settle = Settle {
        state: None,
        id: page.records[0].id,
        fence: page.records[0].fence,
        settlement: Settlement::Forgotten,
        force: true,
        ttl_us: None,
        grace_us: 0,
        note: Note::new("a test", "to lose its lease").unwrap(),
    };
    let written = store.inner.settle(&settle).await.unwrap();
    assert_eq!(written, Written::Done);
}

#[tokio::test]
async fn a_reservation_that_comes_too_late_is_counted_as_given_back() {
    let _turn = alone().await;
    Recorded::start();
    let reply = Arc::new(Notify::new());
    let store = Faulty::default().on_reserve([Fault::HoldReply(Arc::clone(&reply))]);
    let engine = Engine::builder(store.clone()).build().await.unwrap();
    let of = Of("faults.given_back");
    let caller = tokio::spawn(engine.call(of.0, &1, DAY).run(answers()));
    until(|| store.reserves() == 1).await;
    caller.abort();
    caller.await.unwrap_err();
    reply.notify_one();
    until(|| of.ends("given_back") == 1).await;
    until(|| of.calls("left") == 1).await;
    assert_eq!((of.all(names::CALLS), of.all(names::RESERVATIONS)), (1, 1));
}

#[tokio::test]
async fn a_probe_without_a_decision_is_counted_as_such() {
    let _turn = alone().await;
    Recorded::start();
    let engine = build(&Faulty::default()).await;
    let of = Of("faults.undecided");
    let call = || engine.call(of.0, &1, DAY).on_error(on_error::Unknown);
    let failed = async {
        Err::<u32, _>(Error::Failed {
            message: "own".into(),
        })
    };
    call().run(failed).await.unwrap_err();
    let probe = async { Ok::<Recovered<u32>, Error>(Recovered::Unknown) };
    call().run_or_recover(probe, answers()).await.unwrap_err();
    assert_eq!((of.calls("executed"), of.calls("undecided")), (1, 1));
    assert_eq!((of.ends("unknown"), of.ends("undecided")), (1, 1));
    let again = call().on_unknown(OnUnknown::Rerun).run(answers()).await;
    assert_eq!(again, Ok(1));
    let done = async { Ok::<_, Error>(Recovered::Done(5)) };
    let of = Of("faults.recovered");
    let call = || engine.call(of.0, &1, DAY).on_error(on_error::Unknown);
    let failed = async {
        Err::<u32, _>(Error::Failed {
            message: "own".into(),
        })
    };
    call().run(failed).await.unwrap_err();
    assert_eq!(call().run_or_recover(done, answers()).await, Ok(5));
    assert_eq!((of.calls("recovered"), of.ends("completed")), (1, 1));
}

#[tokio::test]
async fn what_a_shutdown_marks_unknown_is_counted_once() {
    let _turn = alone().await;
    Recorded::start();
    let engine = build(&Faulty::default()).await;
    let of = Of("faults.shut_down");
    let (open, gate) = oneshot::channel::<()>();
    let running = tokio::spawn(engine.call(of.0, &1, DAY).run(async {
        gate.await.ok();
        std::panic::resume_unwind(Box::new("a body's own"));
        #[expect(unreachable_code, reason = "names the type")]
        answers().await
    }));
    until(|| engine.stats().attempts == 1).await;
    engine.shutdown(Duration::from_millis(1)).await.unwrap();
    assert_eq!(of.ends("unknown"), 1);
    let late = engine.call(of.0, &2, DAY).run(answers()).await;
    assert_eq!(
        (late, of.calls("shutting_down")),
        (Err(Error::ShuttingDown), 1)
    );
    // The body says so too.
    open.send(()).unwrap();
    running.await.unwrap_err();
    assert_eq!((of.ends("unknown"), of.calls("executed")), (1, 1));
}

#[tokio::test]
async fn what_reconcile_settles_is_an_end_of_its_attempt() {
    let _turn = alone().await;
    Recorded::start();
    let engine = Engine::builder(idem::store::MemoryStore::new())
        .build()
        .await
        .unwrap();
    let of = Of("faults.reconciled");
    for key in 0..3 {
        let call = engine.call(of.0, &key, DAY).on_error(on_error::Unknown);
        let failed = Error::Failed {
            message: "no answer".to_owned(),
        };
        call.run(async { Err::<u32, _>(failed) }).await.unwrap_err();
    }
    let mut asked = 0;
    let pass = engine.reconcile(of.0, |_| {
        asked += 1;
        ready(Ok::<_, Error>(match asked {
            1 => Recovered::Done(1),
            2 => Recovered::NotDone,
            _ => Recovered::Unknown,
        }))
    });
    let reconciled = pass.run().await.unwrap();
    let [done, not_done, unknown] = [reconciled.done, reconciled.not_done, reconciled.unknown];
    assert_eq!([done, not_done, unknown], [1, 1, 1]);
    assert_eq!((of.ends("completed"), of.ends("released")), (1, 1));
    until(|| of.all(names::ATTEMPTS) == of.all(names::RESERVATIONS)).await;
    assert_eq!(of.all(names::ATTEMPTS), 6);
}
