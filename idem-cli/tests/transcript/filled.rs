//! A store with one record of each kind.

use std::time::Duration;

use idem::store::Store;
use idem::testing::ManualClock;
use idem::{Engine, Error, Ttl, idempotent};
use tokio::task::JoinHandle;

const DAY: Duration = Duration::from_secs(86_400);

/// The beginning of 2025: whenever this runs, it is long ago.
pub(crate) fn long_ago() -> ManualClock {
    let clock = ManualClock::new();
    clock.step(-365 * 86_400_000_000);
    clock
}

/// What holds two records of the store for as long as it lives.
pub(crate) struct Held {
    _engines: [Engine; 2],
    attempts: [JoinHandle<()>; 2],
}

impl Drop for Held {
    fn drop(&mut self) {
        for attempt in &self.attempts {
            attempt.abort();
        }
    }
}

/// Fills a store by real engines: one whose clock stands still long ago, one of
/// today.
///
/// | key | is |
/// |---|---|
/// | `["m-1","o-1"]` | completed |
/// | `["m-1","o-2"]` | unknown |
/// | `"u-3"` | lapsed |
/// | `"u-4"` | in progress |
/// | `"r-5"` | a tombstone |
/// | `"c-6"` | expired |
pub(crate) async fn fill<S: Store + Clone>(long_ago: S, today: S, clock: ManualClock) -> Held {
    // The lease is so long that nobody renews it while a test runs.
    let builder = || {
        let builder = Engine::builder(long_ago.clone()).namespace("shop");
        builder.clock(clock.clone()).lease(DAY).max_run(DAY)
    };
    let past = builder().build().await.unwrap();
    let (done, doubtful) = (
        charge("m-1", "o-1", 4_200, "EUR"),
        charge("m-1", "o-2", 9_900, "EUR"),
    );
    past.scope(done).await.unwrap();
    past.scope(doubtful).await.unwrap_err();
    let small = builder().answer_limit(16).build().await.unwrap();
    small
        .call("reports.export", &"r-5", Ttl::Forever)
        .run(async { Ok::<_, Error>("a report of more than 16 bytes".to_owned()) })
        .await
        .unwrap();
    past.call("carts.price", &"c-6", Duration::from_secs(3_600))
        .run(async { Ok::<_, Error>(1_234) })
        .await
        .unwrap();
    let lapsed = hold(past.clone(), "u-3").await;

    let present = Engine::builder(today)
        .namespace("shop")
        .build()
        .await
        .unwrap();
    let running = hold(present.clone(), "u-4").await;
    Held {
        _engines: [past, present],
        attempts: [lapsed, running],
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Charge {
    charge: String,
}

#[idempotent(
    name = "payments.charge",
    key = (merchant, order),
    payload = (amount, currency),
    label = format!("order {}", &order[2..]),
    ttl = forever,
    on_error = unknown,
)]
async fn charge(
    merchant: &'static str,
    order: &'static str,
    amount: u64,
    currency: &'static str,
) -> Result<Charge, Error> {
    if order == "o-2" {
        let message = format!("no answer from {merchant} about {amount} {currency}");
        return Err(Error::Failed { message });
    }
    Ok(Charge {
        charge: "ch_7Q2".to_owned(),
    })
}

/// Begins an attempt that does not end.
async fn hold(engine: Engine, key: &'static str) -> JoinHandle<()> {
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let attempt = tokio::spawn(async move {
        let _never = engine
            .call("mail.welcome", &key, Ttl::Forever)
            .run(async move {
                begun.send(()).unwrap();
                std::future::pending::<Result<(), Error>>().await
            })
            .await;
    });
    has_begun.await.unwrap();
    attempt
}
