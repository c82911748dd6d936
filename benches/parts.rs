//! What a call costs in this process: the fingerprint, the flight, and how often the store is asked.
//!
//! **Shows** the fingerprint of a small and of a large argument beside `serde_json::to_vec` and one
//! SHA-256; a flight beside `singleflight-async` and `async_singleflight`, alone and with 64 callers
//! of one key; and counts what 64 callers of one key ask of the store.
//!
//! **Run** it:
//!
//! ```text
//! cargo bench --manifest-path benches/Cargo.toml --bench parts --features flights
//! ```
//!
//! Ratios come from `harness/batch.rs`, which interleaves what is compared: criterion measures one
//! function after the other, so what else the machine does in between would be in the ratio. What
//! has nothing beside it is criterion's: `--bench calls`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_singleflight::Group;
use futures_util::future::join_all;
use harness::batch::{Part, compare};
use harness::counting::Counting;
use harness::keys::key;
use harness::orders::{basket, order};
use harness::{BoxError, Options};
use idem::identity::Identity;
use idem::store::MemoryStore;
use idem::{Engine, Error, canonical};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use singleflight_async::SingleFlight;
use tokio::runtime::Runtime;

const CALLERS: usize = 64;

fn main() -> Result<(), BoxError> {
    let options = Options::of_command_line()?;
    fingerprint(&options, "fingerprint, 5 fields", &order())?;
    fingerprint(&options, "fingerprint, 10 KB", &basket())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    alone(&options, &runtime)?;
    joined(&options, &runtime)?;
    harness::on_two_threads(asked(options))
}

/// From an argument to its digest.
fn fingerprint<T: Serialize>(options: &Options, group: &str, value: &T) -> Result<(), BoxError> {
    let identity = Identity::new(None, "bench");
    let id = identity.record_id("bench.charge", None, br#""o-7""#);
    let plain = Part::new("serde_json::to_vec + SHA-256", |times| {
        for _ in 0..times {
            let json = serde_json::to_vec(std::hint::black_box(value))?;
            std::hint::black_box(Sha256::digest(json));
        }
        Ok(())
    });
    // What the engine does of it for a payload of one element: canonical JSON, then a keyed digest
    // of it together with the record id.
    let ours = Part::new("idem", |times| {
        for _ in 0..times {
            let json = canonical::to_vec(std::hint::black_box(value))?;
            std::hint::black_box(identity.fingerprint(&id, &[&json]));
        }
        Ok(())
    });
    compare(options, group, 1.0, None, &mut [plain, ours])
}

/// What runs the body for all callers of a key.
trait Flights {
    /// What callers share.
    type Flown;

    fn fly(&self, key: [u8; 32], body: Body) -> impl Future<Output = Self::Flown>;
}

/// A body that is not ready at once, so that others can join it.
struct Body {
    ran: Arc<AtomicUsize>,
    waits: bool,
}

impl Body {
    async fn run(self) -> &'static [u8] {
        self.ran.fetch_add(1, Ordering::Relaxed);
        if self.waits {
            let mut polled = false;
            std::future::poll_fn(|context| {
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        b"{\"Ok\":1}"
    }
}

struct Nothing;
impl Flights for Nothing {
    type Flown = Arc<[u8]>;

    async fn fly(&self, _: [u8; 32], body: Body) -> Arc<[u8]> {
        Arc::from(body.run().await)
    }
}

impl Flights for SingleFlight<[u8; 32], Arc<[u8]>> {
    type Flown = Arc<[u8]>;

    async fn fly(&self, key: [u8; 32], body: Body) -> Arc<[u8]> {
        self.work(key, || async { Arc::from(body.run().await) })
            .await
    }
}

struct Grouped(Group<[u8; 32], Arc<[u8]>, Infallible>);
impl Flights for Grouped {
    type Flown = Option<Arc<[u8]>>;

    async fn fly(&self, key: [u8; 32], body: Body) -> Option<Arc<[u8]>> {
        let body = async { Ok(Arc::from(body.run().await)) };
        self.0.work(&key, body).await.ok()
    }
}

/// The engine's own, which is not public: `testing` shows it.
#[cfg(feature = "flights")]
impl Flights for idem::testing::parts::Flights {
    type Flown = idem::testing::parts::Flown;

    async fn fly(&self, key: [u8; 32], body: Body) -> Self::Flown {
        self.fly(key, async { body.run().await.to_vec() }).await
    }
}

/// One caller, whose body is ready at once.
fn alone(options: &Options, runtime: &Runtime) -> Result<(), BoxError> {
    fn part<'a>(runtime: &'a Runtime, name: &'static str, flights: impl Flights + 'a) -> Part<'a> {
        let ran = Arc::new(AtomicUsize::new(0));
        let key = key(1, 1);
        Part::new(name, move |times| {
            runtime.block_on(tokio::task::unconstrained(async {
                for _ in 0..times {
                    let body = Body {
                        ran: Arc::clone(&ran),
                        waits: false,
                    };
                    std::hint::black_box(flights.fly(key, body).await);
                }
            }));
            Ok(())
        })
    }
    let mut parts = vec![
        part(runtime, "singleflight-async", SingleFlight::new()),
        part(runtime, "no flight", Nothing),
        part(runtime, "async_singleflight", Grouped(Group::new())),
    ];
    #[cfg(feature = "flights")]
    parts.push(part(runtime, "idem", idem::testing::parts::Flights::new()));
    compare(options, "flight, one caller", 1.0, None, &mut parts)
}

/// 64 callers of one key: all join before the body ends, and it must run once.
fn joined(options: &Options, runtime: &Runtime) -> Result<(), BoxError> {
    fn part<'a>(
        runtime: &'a Runtime,
        name: &'static str,
        runs: usize,
        flights: impl Flights + 'a,
    ) -> Part<'a> {
        let key = key(1, 2);
        Part::new(name, move |times| {
            let ran = Arc::new(AtomicUsize::new(0));
            runtime.block_on(tokio::task::unconstrained(async {
                for _ in 0..times {
                    let callers = (0..CALLERS).map(|_| {
                        let body = Body {
                            ran: Arc::clone(&ran),
                            waits: true,
                        };
                        flights.fly(key, body)
                    });
                    std::hint::black_box(join_all(callers).await);
                }
            }));
            let ran = ran.load(Ordering::Relaxed);
            if ran == runs * usize::try_from(times)? {
                return Ok(());
            }
            Err(format!("{name}: {ran} bodies ran for {times} flights").into())
        })
    }
    let mut parts = vec![
        part(runtime, "singleflight-async", 1, SingleFlight::new()),
        part(runtime, "no flight", CALLERS, Nothing),
        part(runtime, "async_singleflight", 1, Grouped(Group::new())),
    ];
    #[cfg(feature = "flights")]
    parts.push(part(
        runtime,
        "idem",
        1,
        idem::testing::parts::Flights::new(),
    ));
    // The second is what polling 64 futures costs without any flight.
    compare(
        options,
        "flight, per caller of 64 of one key",
        CALLERS as f64,
        Some(1),
        &mut parts,
    )
}

/// 64 callers of one key, through the engine: what is asked of the store, and how often the body runs.
async fn asked(options: Options) -> Result<(), BoxError> {
    let mut seen = HashMap::new();
    let rounds = if options.quick { 20 } else { 200 };
    for round in 0..rounds {
        let store = Counting::new(MemoryStore::new());
        let engine = Engine::builder(store.clone()).build().await?;
        let ran = Arc::new(AtomicUsize::new(0));
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..CALLERS {
            let (engine, ran) = (engine.clone(), Arc::clone(&ran));
            callers.spawn(async move {
                let call = engine.call("bench.charge", &round, Duration::from_secs(60));
                let body = async move {
                    ran.fetch_add(1, Ordering::SeqCst);
                    // Until all others have come.
                    while engine.stats().waiters < CALLERS - 1 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    Ok::<_, Error>(round)
                };
                call.run(body).await
            });
        }
        while let Some(answer) = callers.join_next().await {
            answer??;
        }
        let counts = (ran.load(Ordering::SeqCst), store.asked());
        *seen.entry(counts).or_insert(0) += 1;
    }
    println!("\n64 callers of one key in one process, {rounds} times");
    let mut most = (0, 0);
    for ((ran, asked), times) in &seen {
        println!("  {times} times: the body ran {ran} times, the store was asked {asked} times");
        most = (most.0.max(*ran), most.1.max(*asked));
    }
    options.note(&json!({ "bench": "asked", "rounds": rounds, "ran": most.0, "asked": most.1 }))?;
    if most == (1, 2) {
        return Ok(());
    }
    Err("the body must run once, and the store be asked twice".into())
}
