//! The suite that `docs/testing.md` shows, word for word; it proves that the
//! page is right.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem::testing::{CrashPoint, Testbed, assert_executed, assert_how, assert_replayed};
use idem::{Disposition, Recovered, idempotent};
use serde::{Deserialize, Serialize};

// The function, and what it needs.

#[idempotent(
    name = "payments.charge", scope = merchant, key = order, payload = amount, ttl = "24h",
    on_error = classify(ChargeError::disposition), on_unknown = recover(gateway.find(order))
)]
async fn charge(gateway: Gateway, merchant: u32, order: u32, amount: u64) -> Answer {
    let _ = merchant;
    gateway.charge(order, amount).await
}

type Answer = Result<Charge, ChargeError>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Charge {
    number: usize,
    amount: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum ChargeError {
    Declined,
    Busy,
    AnswerLost,
    Idem(idem::Error),
}

impl From<idem::Error> for ChargeError {
    fn from(error: idem::Error) -> Self {
        Self::Idem(error)
    }
}

impl ChargeError {
    fn disposition(&self) -> Disposition {
        match self {
            Self::Declined => Disposition::Store,
            Self::Busy => Disposition::Release,
            Self::AnswerLost | Self::Idem(_) => Disposition::Unknown,
        }
    }
}

// The fake: it counts, fails when told to, and waits while a test holds `line`.

#[derive(Clone, Default)]
struct Gateway(Arc<Fake>);

#[derive(Default)]
struct Fake {
    charges: Mutex<Vec<(u32, Charge)>>,
    fails: Mutex<Option<ChargeError>>,
    line: tokio::sync::Mutex<()>,
}

impl Gateway {
    async fn charge(&self, order: u32, amount: u64) -> Answer {
        drop(self.0.line.lock().await);
        let fails = self.0.fails.lock().unwrap().take();
        if let Some(error @ (ChargeError::Declined | ChargeError::Busy)) = fails {
            return Err(error);
        }
        let mut charges = self.0.charges.lock().unwrap();
        let number = charges.len() + 1;
        charges.push((order, Charge { number, amount }));
        fails.map_or(Ok(Charge { number, amount }), Err)
    }

    async fn find(&self, order: u32) -> Result<Recovered<Charge>, ChargeError> {
        drop(self.0.line.lock().await);
        let charges = self.0.charges.lock().unwrap();
        let found = charges.iter().find(|charge| charge.0 == order);
        Ok(found.map_or(Recovered::NotDone, |(_, charge)| {
            Recovered::Done(charge.clone())
        }))
    }

    fn fails(&self, error: ChargeError) {
        *self.0.fails.lock().unwrap() = Some(error);
    }

    fn charged(&self) -> usize {
        self.0.charges.lock().unwrap().len()
    }
}

const HOUR: Duration = Duration::from_secs(60 * 60);

// The tests.

#[tokio::test]
async fn a_repeated_order_is_charged_once() {
    let (t, gateway) = (Testbed::new().await, Gateway::default());
    let call = || t.scope(charge(gateway.clone(), 1, 7, 4_200));

    let first = assert_executed!(call());
    let again = assert_replayed!(call());
    assert_eq!(first, again);
    assert_eq!((gateway.charged(), t.runs("payments.charge")), (1, 1));
}

#[tokio::test]
async fn another_amount_is_refused_and_another_merchant_is_charged() {
    let (t, gateway) = (Testbed::new().await, Gateway::default());
    let call = |merchant, amount| t.scope(charge(gateway.clone(), merchant, 7, amount));

    assert_executed!(call(1, 4_200)).unwrap();
    let refused = assert_how!(Refused, call(1, 9_900));
    let differs = vec!["amount".to_owned()];
    let mismatch = idem::Error::PayloadMismatch { differs };
    assert_eq!(refused, Err(ChargeError::Idem(mismatch)));
    assert_executed!(call(2, 9_900)).unwrap();
    assert_eq!(gateway.charged(), 2);
}

#[tokio::test]
async fn the_answer_is_kept_for_a_day() {
    let (t, gateway) = (Testbed::new().await, Gateway::default());
    let call = || t.scope(charge(gateway.clone(), 1, 7, 4_200));

    assert_executed!(call()).unwrap();
    t.clock().advance(23 * HOUR);
    assert_replayed!(call()).unwrap();
    t.clock().advance(2 * HOUR);
    assert_executed!(call()).unwrap();
}

#[tokio::test]
async fn after_a_crash_the_gateway_is_asked_before_anybody_is_charged_again() {
    for point in [
        CrashPoint::BeforeBody,
        CrashPoint::InBody,
        CrashPoint::AfterBody,
    ] {
        let (t, gateway) = (Testbed::new().await, Gateway::default());
        let call = || t.scope(charge(gateway.clone(), 1, 7, 4_200));

        t.crash_at("payments.charge", point);
        let lost = assert_how!(Refused, call());
        assert_eq!(lost, Err(ChargeError::Idem(idem::Error::ShuttingDown)));
        t.lapse();
        if gateway.charged() == 0 {
            assert_executed!(call()).unwrap();
        } else {
            assert_how!(Recovered, call()).unwrap();
        }
        assert_replayed!(call()).unwrap();
        assert_eq!(gateway.charged(), 1, "{point:?}");
    }
}

// `start_paused` (tokio's feature `test-util`): what waits does not take time.
#[tokio::test(start_paused = true)]
async fn a_client_that_gives_up_does_not_stop_the_charge() {
    let (t, gateway) = (Testbed::new().await, Gateway::default());
    let call = || t.scope(charge(gateway.clone(), 1, 7, 4_200));

    let line = gateway.0.line.lock().await;
    let gave_up = tokio::time::timeout(Duration::from_secs(2), call()).await;
    assert!(gave_up.is_err());
    // However long it takes: the body runs, so its lease is renewed.
    t.clock().advance(48 * HOUR);
    drop(line);
    assert_eq!(call().await.unwrap().number, 1);
    assert_eq!(gateway.charged(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_process_waits_and_then_says_that_the_charge_is_running() {
    let (t, gateway) = (Testbed::new().await, Gateway::default());
    let other = t.another_process().await;
    let call = |t: &Testbed| t.scope(charge(gateway.clone(), 1, 7, 4_200));

    let line = gateway.0.line.lock().await;
    let first = tokio::spawn(call(&t));
    while t.runs("payments.charge") == 0 {
        tokio::task::yield_now().await;
    }
    match call(&other).await {
        Err(ChargeError::Idem(error)) => assert!(error.is_in_progress()),
        answer => panic!("{answer:?}"),
    }
    drop(line);
    let first = first.await.unwrap();
    assert_eq!(assert_replayed!(call(&other)), first);
    assert_eq!(other.runs("payments.charge"), 0);
}

#[tokio::test]
async fn each_error_of_the_gateway_says_what_a_retry_may_do() {
    let (t, gateway) = (Testbed::new().await, Gateway::default());
    let call = |order| t.scope(charge(gateway.clone(), 1, order, 4_200));

    gateway.fails(ChargeError::Declined);
    assert_eq!(assert_executed!(call(1)), Err(ChargeError::Declined));
    assert_eq!(assert_replayed!(call(1)), Err(ChargeError::Declined));

    gateway.fails(ChargeError::Busy);
    assert_eq!(assert_executed!(call(2)), Err(ChargeError::Busy));
    assert_executed!(call(2)).unwrap();

    gateway.fails(ChargeError::AnswerLost);
    assert_eq!(assert_executed!(call(3)), Err(ChargeError::AnswerLost));
    assert_how!(Recovered, call(3)).unwrap();
    assert_eq!(gateway.charged(), 2);
}
