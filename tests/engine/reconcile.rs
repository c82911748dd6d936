//! Asking the outside world without a caller: what is recorded, who may ask, and
//! every way in which a pass meets others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem::admin::{Filter, Reconciled, RecordRef, Unknown};
use idem::record::Standing;
use idem::testing::{CrashPoint, Testbed, assert_executed, assert_replayed};
use idem::{
    Clock as _, Engine, Error, OnUnknown, Recovered, TombstoneReason, UnknownReason, idempotent,
};
use tokio::sync::oneshot;

use crate::faulty::{Fault, Faulty};
use crate::{DAY, Runs, idle, until};

pub(crate) const CHARGE: &str = "reconcile.charge";

pub(crate) fn failed(message: &str) -> Error {
    Error::Failed {
        message: message.to_owned(),
    }
}

#[idempotent(
    name = "reconcile.charge", scope = "shop", key = order, payload = amount,
    label = format!("order {order}"), ttl = "24h", on_error = unknown
)]
pub(crate) async fn charge(order: u32, amount: u64, fails: bool) -> Result<u64, Error> {
    if fails {
        return Err(failed("no answer"));
    }
    Ok(amount)
}

/// A provider: what it says of each order, and how often it was asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Provider {
    says: Arc<Mutex<HashMap<String, Recovered<u64>>>>,
    pub(crate) asked: Arc<Mutex<HashMap<String, usize>>>,
}

impl Provider {
    pub(crate) fn says(self, order: u32, found: Recovered<u64>) -> Self {
        let mut says = self.says.lock().unwrap();
        says.insert(format!("order {order}"), found);
        drop(says);
        self
    }

    pub(crate) fn find(&self, unknown: &Unknown) -> Result<Recovered<u64>, Error> {
        let label = unknown.label().unwrap();
        let mut asked = self.asked.lock().unwrap();
        *asked.entry(label.to_owned()).or_default() += 1;
        let found = self.says.lock().unwrap().get(label).cloned();
        found.ok_or(failed("cannot ask"))
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.lock().unwrap().values().sum()
    }

    pub(crate) async fn pass(&self, engine: &Engine) -> Reconciled {
        let pass = engine.reconcile(CHARGE, async |unknown| self.find(&unknown));
        pass.run().await.unwrap()
    }
}

pub(crate) fn record(engine: &Engine, order: u32) -> RecordRef {
    engine.record(CHARGE).scope("shop").key(&order)
}

pub(crate) async fn unknown(t: &Testbed, order: u32) {
    t.scope(charge(order, 4_200, true)).await.unwrap_err();
}

async fn lapsed(t: &Testbed, order: u32) {
    t.crash_at(CHARGE, CrashPoint::AfterBody);
    t.scope(charge(order, 4_200, false)).await.unwrap_err();
    t.lapse();
}

pub(crate) async fn fail(engine: &Engine, order: u32) {
    engine.scope(charge(order, 4_200, true)).await.unwrap_err();
}

pub(crate) fn summary(pass: Reconciled) -> (u64, u64, u64, u64) {
    assert!(!pass.more);
    (pass.done, pass.not_done, pass.unknown, pass.skipped)
}

#[tokio::test]
async fn what_is_found_is_recorded_and_replayed_and_the_body_never_runs_again() {
    let t = Testbed::new().await;
    unknown(&t, 1).await;
    lapsed(&t, 2).await;
    let provider = Provider::default()
        .says(1, Recovered::Done(1))
        .says(2, Recovered::Done(2));
    assert_eq!(summary(provider.pass(t.engine()).await), (2, 0, 0, 0));
    assert_eq!(assert_replayed!(t.scope(charge(1, 4_200, false))), Ok(1));
    assert_eq!(assert_replayed!(t.scope(charge(2, 4_200, false))), Ok(2));
    // The payload of the first call still counts, which reconcile never saw.
    let other = t.scope(charge(1, 1, false)).await.unwrap_err();
    assert_eq!(
        other,
        Error::PayloadMismatch {
            differs: vec!["amount".to_owned()]
        }
    );
    assert_eq!(t.runs(CHARGE), 2);
    assert_eq!(provider.pass(t.engine()).await, Reconciled::default());
    assert_eq!(provider.asked(), 2);
    idle(t.engine()).await;
}

#[tokio::test]
async fn if_nothing_happened_the_next_caller_runs() {
    let t = Testbed::new().await;
    unknown(&t, 1).await;
    lapsed(&t, 2).await;
    let provider = Provider::default()
        .says(1, Recovered::NotDone)
        .says(2, Recovered::NotDone);
    assert_eq!(summary(provider.pass(t.engine()).await), (0, 2, 0, 0));
    assert_eq!(t.runs(CHARGE), 2, "no body of its own");
    // With the payload that it has.
    assert_eq!(assert_executed!(t.scope(charge(1, 7, false))), Ok(7));
    assert_eq!(assert_executed!(t.scope(charge(2, 8, false))), Ok(8));
}

#[tokio::test]
async fn undecided_it_stays_unknown_waits_longer_each_time_and_does_not_count() {
    let t = Testbed::new().await;
    lapsed(&t, 1).await;
    let runs = Runs::default();
    let mut pauses = Vec::new();
    for probe in 1..=12 {
        let pass = t
            .engine()
            .reconcile(CHARGE, async |_| match runs.add() % 3 {
                0 => panic!("a probe that panics"),
                1 => Ok(Recovered::<u64>::Unknown),
                _ => Err(failed("cannot ask")),
            });
        assert_eq!(summary(pass.run().await.unwrap()), (0, 0, 1, 0));
        assert_eq!(runs.count(), probe);
        let seen = record(t.engine(), 1).get().await.unwrap().unwrap();
        assert_eq!(seen.record.takeovers, 0);
        let pause_us = seen.record.not_before_us.unwrap() - seen.now_us;
        let pause = Duration::from_micros(pause_us.try_into().unwrap());
        pauses.push(pause);
        let early = Provider::default().pass(t.engine()).await;
        assert_eq!(summary(early), (0, 0, 0, 1), "too early");
        t.clock().advance(pause);
    }
    assert_eq!(pauses[0], Duration::from_secs(10), "a third of the lease");
    assert!(pauses.is_sorted());
    assert_eq!(pauses[11], Duration::from_secs(300), "at most five minutes");
    let refused = t.scope(charge(1, 4_200, false)).await.unwrap_err();
    assert!(matches!(
        refused,
        Error::UnknownOutcome {
            reason: UnknownReason::Undecided,
            ..
        }
    ));
    let provider = Provider::default().says(1, Recovered::Done(4_200));
    assert_eq!(summary(provider.pass(t.engine()).await), (1, 0, 0, 0));
    assert_eq!(t.runs(CHARGE), 1);
}

#[tokio::test]
async fn a_panic_stops_nobody_else() {
    let t = Testbed::new().await;
    for order in 1..=5 {
        unknown(&t, order).await;
    }
    let pass = t.engine().reconcile(CHARGE, async |unknown| {
        assert_ne!(unknown.label(), Some("order 3"));
        Ok::<_, Error>(Recovered::Done(1_u64))
    });
    assert_eq!(summary(pass.run().await.unwrap()), (4, 0, 1, 0));
    // In the closure, before there is a future.
    unknown(&t, 6).await;
    let pass = t.engine().reconcile(CHARGE, |unknown| {
        assert_ne!(unknown.label(), Some("order 6"));
        std::future::ready(Ok::<_, Error>(Recovered::Done(1_u64)))
    });
    assert_eq!(summary(pass.run().await.unwrap()), (0, 0, 1, 1));
    idle(t.engine()).await;
}

#[tokio::test]
async fn the_probe_is_told_what_the_record_tells() {
    let t = Testbed::new().await;
    let key = Arc::new(Mutex::new(String::new()));
    let call = t
        .engine()
        .call(CHARGE, &7, DAY)
        .scope("shop")
        .label("order 7");
    let call = call.on_error(idem::on_error::Unknown);
    let sent = Arc::clone(&key);
    let body = async move {
        *sent.lock().unwrap() = idem::context()?.downstream_key("capture");
        Err::<u64, _>(failed("no answer"))
    };
    call.run(body).await.unwrap_err();
    let since =
        std::time::UNIX_EPOCH + Duration::from_micros(t.clock().unix_us().try_into().unwrap());
    t.clock().advance(Duration::from_secs(90));

    let pass = t.engine().reconcile(CHARGE, async |unknown| {
        assert_eq!(unknown.record_id(), record(t.engine(), 7).id()?);
        assert_eq!(unknown.label(), Some("order 7"));
        assert_eq!(unknown.attempt(), 2);
        assert_eq!(unknown.since(), since);
        assert_eq!(unknown.downstream_key("capture"), *key.lock().unwrap());
        assert!(!format!("{unknown:?}").contains("order 7"));
        // The same probe serves `recover(…)`.
        let context = idem::context()?;
        assert_eq!(context.downstream_key("capture"), *key.lock().unwrap());
        assert_eq!(context.attempt(), 2);
        assert!(context.is_reattempt());
        context.ensure_held().await?;
        Ok::<_, Error>(Recovered::Done(1_u64))
    });
    assert_eq!(summary(pass.run().await.unwrap()), (1, 0, 0, 0));
}

#[tokio::test]
async fn other_operations_and_records_that_are_not_in_doubt_are_left_alone() {
    let t = Testbed::new().await;
    let other = t.engine().call("reconcile.other", &1, DAY);
    let other = other.on_error(idem::on_error::Unknown);
    other
        .run(async { Err::<u64, _>(failed("")) })
        .await
        .unwrap_err();
    t.scope(charge(1, 1, false)).await.unwrap();
    let provider = Provider::default();
    assert_eq!(provider.pass(t.engine()).await, Reconciled::default());
    assert_eq!(provider.asked(), 0);
}

#[tokio::test]
async fn a_pass_is_bounded_and_passes_come_round_to_every_record() {
    let t = Testbed::new().await;
    let mut provider = Provider::default();
    for order in 0..10 {
        if order % 2 == 0 {
            lapsed(&t, order).await;
        } else {
            unknown(&t, order).await;
        }
        provider = provider.says(order, Recovered::Done(u64::from(order)));
    }
    let mut passes = Vec::new();
    while passes.iter().sum::<u64>() < 10 {
        let pass = t
            .engine()
            .reconcile(CHARGE, async |unknown| provider.find(&unknown));
        let reconciled = pass.limit(3).run().await.unwrap();
        assert_eq!(reconciled.more, passes.len() < 3);
        passes.push(reconciled.done);
    }
    assert_eq!(passes, [3, 3, 3, 1]);
    assert_eq!(provider.asked(), 10);
}

#[tokio::test]
async fn records_that_stay_undecided_do_not_starve_the_others() {
    let t = Testbed::new().await;
    for order in 0..20 {
        unknown(&t, order).await;
    }
    // One in twenty is decided, each pass asks about two, and all are due again.
    let provider = Provider::default().says(13, Recovered::Done(1));
    for pass in 0.. {
        assert!(pass < 2_000, "never asked");
        let pass = t
            .engine()
            .reconcile(CHARGE, async |unknown| provider.find(&unknown));
        if pass.limit(2).run().await.unwrap().done == 1 {
            break;
        }
        t.clock().advance(Duration::from_secs(301));
    }
}

#[tokio::test]
async fn what_was_settled_is_in_the_audit_with_who_when_and_why() {
    let t = Testbed::new().await;
    unknown(&t, 1).await;
    unknown(&t, 2).await;
    unknown(&t, 3).await;
    let at_us = t.clock().unix_us();
    let provider = Provider::default()
        .says(1, Recovered::Done(1))
        .says(2, Recovered::NotDone)
        .says(3, Recovered::Unknown);
    assert_eq!(summary(provider.pass(t.engine()).await), (1, 1, 1, 0));
    for (order, became, why) in [
        (1, 1, "the probe found the answer"),
        (2, 2, "the probe found that nothing had happened"),
    ] {
        let audit = record(t.engine(), order).audit().await.unwrap();
        let [entry] = &audit[..] else {
            panic!("{audit:?}");
        };
        assert_eq!((entry.note.by(), entry.note.why()), ("reconcile", why));
        assert_eq!((entry.became, entry.at_us), (became, at_us));
    }
    let undecided = record(t.engine(), 3);
    assert_eq!(undecided.audit().await, Ok(vec![]), "nothing was settled");

    t.clock().advance(DAY);
    let pass = t
        .engine()
        .reconcile(CHARGE, async |_| Ok::<_, Error>(Recovered::Done(3_u64)));
    let pass = pass.by("reconcile@pod-7").keep(DAY).run().await.unwrap();
    assert_eq!(pass.done, 1);
    let audit = undecided.audit().await.unwrap();
    assert_eq!(audit[0].note.by(), "reconcile@pod-7");
    let seen = undecided.get().await.unwrap().unwrap();
    let day_us = i64::try_from(DAY.as_micros()).unwrap();
    assert_eq!(seen.record.expires_us, Some(seen.now_us + day_us));
    let first = record(t.engine(), 1).get().await.unwrap().unwrap();
    assert_eq!(first.record.expires_us, None, "by default for ever");
}

#[tokio::test]
async fn mistakes_are_told_before_anything_is_asked() {
    let t = Testbed::new().await;
    unknown(&t, 1).await;
    let probes = Runs::default();
    let pass = |operation: &str| {
        t.engine().reconcile(operation.to_owned(), async |_| {
            probes.add();
            Ok::<_, Error>(Recovered::Done(1_u64))
        })
    };
    for wrong in [
        pass("").run().await,
        pass(CHARGE).by(" ").run().await,
        pass(CHARGE).keep(Duration::ZERO).run().await,
    ] {
        assert!(matches!(wrong, Err(Error::Misuse { .. })), "{wrong:?}");
    }
    let adminless = crate::engine(Faulty::default().adminless()).await;
    let none = adminless.reconcile(CHARGE, async |_| Ok::<_, Error>(Recovered::Done(1_u64)));
    assert!(matches!(none.run().await, Err(Error::Misuse { .. })));
    t.engine().shutdown(Duration::ZERO).await.unwrap();
    assert_eq!(pass(CHARGE).run().await, Err(Error::ShuttingDown));
    assert_eq!(probes.count(), 0);
}

#[tokio::test]
async fn a_lost_reply_to_the_settling_is_looked_up_in_the_audit() {
    let store = Faulty::default().on_settle([Fault::LoseReply, Fault::LoseReply]);
    let engine = crate::engine(store.clone()).await;
    fail(&engine, 1).await;
    fail(&engine, 2).await;
    let provider = Provider::default()
        .says(1, Recovered::Done(1))
        .says(2, Recovered::NotDone);
    assert_eq!(summary(provider.pass(&engine).await), (1, 1, 0, 0));
    assert!(store.settles() > 2);
    for order in [1, 2] {
        assert_eq!(record(&engine, order).audit().await.unwrap().len(), 1);
    }
    assert_eq!(engine.scope(charge(1, 4_200, false)).await, Ok(1));
}

#[tokio::test]
async fn a_store_that_refuses_the_settling_leaves_it_unknown_for_the_next_pass() {
    let store = Faulty::default().on_settle([Fault::Break]);
    let engine = crate::engine(store.clone()).await;
    fail(&engine, 1).await;
    let provider = Provider::default().says(1, Recovered::Done(1));
    assert_eq!(summary(provider.pass(&engine).await), (0, 0, 1, 0));
    until(|| store.farewells_answered() == 1).await;
    let seen = record(&engine, 1).get().await.unwrap().unwrap().record;
    assert_eq!(seen.reason, Some(UnknownReason::Undecided.code()));
    assert!(seen.not_before_us.is_some());
    assert_eq!(seen.takeovers, 0);
    idle(&engine).await;
}

#[tokio::test]
async fn a_record_whose_takeovers_are_used_up_is_left_to_people() {
    let t = Testbed::with(|builder| builder.max_takeovers(1)).await;
    unknown(&t, 1).await;
    let rerun = || {
        let call = t
            .engine()
            .call(CHARGE, &2, DAY)
            .scope("shop")
            .label("order 2");
        let call = call.on_unknown(OnUnknown::Rerun);
        call.on_error(idem::on_error::Unknown)
            .run(async { Err::<u64, _>(failed("")) })
    };
    rerun().await.unwrap_err();
    rerun().await.unwrap_err();
    let provider = Provider::default()
        .says(1, Recovered::Done(1))
        .says(2, Recovered::Done(2));
    assert_eq!(summary(provider.pass(t.engine()).await), (1, 0, 0, 1));
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn dropped_while_it_asks_the_record_stays_unknown_and_waits() {
    let t = Testbed::new().await;
    unknown(&t, 1).await;
    let engine = t.engine().clone();
    let (ask, asked) = oneshot::channel();
    let ask = Mutex::new(Some(ask));
    let pass = tokio::spawn(async move {
        let pass = engine.reconcile(CHARGE, async |_| {
            let ask = ask.lock().unwrap().take();
            ask.unwrap().send(()).unwrap();
            std::future::pending::<Result<Recovered<u64>, Error>>().await
        });
        pass.run().await
    });
    asked.await.unwrap();
    pass.abort();
    pass.await.unwrap_err();
    idle(t.engine()).await;
    let record = record(t.engine(), 1);
    let mut filter = Filter::new(Standing::Unknown);
    filter.operation = Some(CHARGE.to_owned());
    let admin = t.engine().admin().unwrap();
    // The renewal thread says it.
    while admin.list(&filter).await.unwrap().records.is_empty() {
        tokio::task::yield_now().await;
    }
    let seen = record.get().await.unwrap().unwrap();
    assert_eq!(seen.record.takeovers, 0);
    assert!(seen.record.not_before_us.is_some_and(|at| at > seen.now_us));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_hangs_is_given_up_after_max_run() {
    let lease = Duration::from_secs(30);
    let t = Testbed::with(move |builder| builder.lease(lease).max_run(lease * 4)).await;
    unknown(&t, 1).await;
    let began = tokio::time::Instant::now();
    let pass = t.engine().reconcile(CHARGE, async |_| {
        std::future::pending::<Result<Recovered<u64>, Error>>().await
    });
    assert_eq!(summary(pass.run().await.unwrap()), (0, 0, 1, 0));
    assert_eq!(began.elapsed().as_secs(), 120);
}

#[tokio::test]
async fn an_answer_that_cannot_be_kept_makes_a_tombstone() {
    let t = Testbed::new().await;
    let call = || {
        let call = t.engine().call("reconcile.float", &1, DAY);
        call.on_error(idem::on_error::Unknown)
    };
    call()
        .run(async { Err::<f64, _>(failed("")) })
        .await
        .unwrap_err();
    let pass = t.engine().reconcile("reconcile.float", async |_| {
        Ok::<_, Error>(Recovered::Done(f64::NAN))
    });
    assert_eq!(summary(pass.run().await.unwrap()), (1, 0, 0, 0));
    let reason = TombstoneReason::NotDecodable;
    let answer = call().run(async { Ok::<f64, Error>(1.0) }).await;
    assert_eq!(
        answer,
        Err(Error::NotReplayable { reason }),
        "done, not run"
    );
}

#[tokio::test]
async fn the_version_that_ran_is_the_one_that_was_applied() {
    let t = Testbed::new().await;
    let apply = |version: u64, fails: bool| {
        let call = t.engine().call("reconcile.sync", &1, DAY).version(&version);
        let call = call.on_error(idem::on_error::Unknown);
        call.run(async move { if fails { Err(failed("")) } else { Ok(version) } })
    };
    apply(2, false).await.unwrap();
    apply(5, true).await.unwrap_err();
    let pass = t.engine().reconcile("reconcile.sync", async |_| {
        Ok::<_, Error>(Recovered::Done(5_u64))
    });
    assert_eq!(summary(pass.run().await.unwrap()), (1, 0, 0, 0));
    assert!(apply(4, false).await.unwrap_err().is_stale());
    assert_eq!(apply(5, false).await, Ok(5));
    assert_eq!(apply(6, false).await, Ok(6));
}

#[tokio::test]
async fn a_pass_can_be_spawned() {
    let t = Testbed::new().await;
    unknown(&t, 1).await;
    let provider = Provider::default().says(1, Recovered::Done(1));
    let engine = t.engine().clone();
    let pass = tokio::spawn(async move {
        let pass = engine.reconcile(CHARGE, async |unknown| {
            tokio::task::yield_now().await;
            provider.find(&unknown)
        });
        pass.run().await
    });
    assert_eq!(summary(pass.await.unwrap().unwrap()), (1, 0, 0, 0));
}
