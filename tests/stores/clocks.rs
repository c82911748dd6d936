//! Whose clock counts: the store's decides leases and TTLs to the microsecond,
//! and never steps back; a process's own has no say.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Recorded};
use idem::store::{
    Complete, Ending, Holder, Lease, MemoryStore, Reserve, Reserved, SqliteStore, Store, Takeover,
    Written,
};
use idem::testing::ManualClock;
use idem::{Engine, Error, OnInProgress, OnUnknown, Ttl};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Both stores on one clock, each with what must live as long as it.
async fn stores(clock: &ManualClock) -> (Vec<Arc<dyn Store>>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteStore::options(folder.path().join("clocks.db")).clock(clock.clone());
    let sqlite = options.open().await.unwrap();
    let memory = MemoryStore::with_clock(clock.clone());
    (vec![Arc::new(memory), Arc::new(sqlite)], folder)
}

fn request(key: u8, claim: u8, lease_us: i64) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([key; 32]),
        operation: "clocks".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us,
        grace_us: 0,
        takeover: Takeover::Rerun,
        max_takeovers: 5,
        version: None,
    }
}

async fn win(store: &dyn Store, request: &Reserve) -> Holder {
    match store.reserve(request).await.unwrap() {
        Reserved::Won(won) => Holder {
            id: request.id,
            claim: request.claim,
            fence: won.fence,
        },
        other => panic!("expected to win, got {other:?}"),
    }
}

async fn complete(store: &dyn Store, holder: Holder, ttl_us: Option<i64>) {
    let answer = Recorded::new(&holder.id, "json", false, b"42".to_vec());
    let request = Complete {
        holder,
        ending: Ending::Answer(answer),
        ttl_us,
    };
    assert_eq!(store.complete(&request).await, Ok(Written::Done));
}

async fn left(store: &dyn Store, key: u8) -> Option<i64> {
    match store.reserve(&request(key, 0xfe, SECOND)).await.unwrap() {
        Reserved::Completed { left_us, .. } => left_us,
        other => panic!("expected a replay, got {other:?}"),
    }
}

#[tokio::test]
async fn ttls_are_exact_to_the_microsecond() {
    let clock = ManualClock::new();
    let (stores, _folder) = stores(&clock).await;
    let ttls = [1_000, 999_000, 1_500_000, 90 * DAY, 36_525 * DAY];
    for (key, ttl) in (1..).zip(ttls) {
        for store in &stores {
            let holder = win(&**store, &request(key, 1, SECOND)).await;
            complete(&**store, holder, Some(ttl)).await;
        }
        clock.step(ttl);
        for store in &stores {
            let kind = store.kind();
            assert_eq!(left(&**store, key).await, Some(0), "{kind}, {ttl}");
        }
        clock.step(1);
        for store in &stores {
            win(&**store, &request(key, 2, SECOND)).await;
        }
    }
}

#[tokio::test]
async fn for_ever_is_for_ever() {
    let clock = ManualClock::new();
    let (stores, _folder) = stores(&clock).await;
    for store in &stores {
        // The second is more than the clock can count.
        for (key, ttl) in [(1, None), (2, Some(i64::MAX))] {
            let holder = win(&**store, &request(key, 1, SECOND)).await;
            complete(&**store, holder, ttl).await;
        }
    }
    clock.step(1_000 * 365 * DAY);
    for store in &stores {
        assert_eq!(left(&**store, 1).await, None);
        assert_eq!(left(&**store, 2).await, None);
    }
}

#[tokio::test]
async fn leases_are_exact_to_the_microsecond() {
    let clock = ManualClock::new();
    let (stores, _folder) = stores(&clock).await;
    for (key, lease) in (1..).zip([100_000, 999_999, 30 * SECOND, DAY]) {
        for store in &stores {
            win(&**store, &request(key, 1, lease)).await;
        }
        clock.step(lease);
        for store in &stores {
            let reply = store.reserve(&request(key, 2, lease)).await.unwrap();
            let kind = store.kind();
            assert_eq!(reply, Reserved::InProgress { left_us: 0 }, "{kind}");
        }
        clock.step(1);
        for store in &stores {
            win(&**store, &request(key, 3, lease)).await;
        }
    }
}

#[tokio::test]
async fn a_step_back_of_the_stores_clock_changes_nothing() {
    let clock = ManualClock::new();
    let (stores, _folder) = stores(&clock).await;
    let mut holders = Vec::new();
    for store in &stores {
        win(&**store, &request(1, 1, SECOND)).await;
        let answered = win(&**store, &request(2, 1, SECOND)).await;
        complete(&**store, answered, Some(3_600 * SECOND)).await;
    }
    clock.step(1_800 * SECOND);
    for store in &stores {
        holders.push(win(&**store, &request(3, 1, 10 * SECOND)).await);
    }
    clock.step(-3_600 * SECOND);
    for (store, live) in stores.iter().zip(holders) {
        let kind = store.kind();
        // A lapsed lease is not revived.
        win(&**store, &request(1, 2, SECOND)).await;
        // An answer neither expires early nor is kept longer by more than the step.
        assert_eq!(left(&**store, 2).await, Some(1_800 * SECOND), "{kind}");
        // A live lease does not lapse, and can be renewed.
        let reply = store.reserve(&request(3, 2, SECOND)).await.unwrap();
        let left_us = 10 * SECOND;
        assert_eq!(reply, Reserved::InProgress { left_us }, "{kind}");
        let lease = Lease {
            holder: live,
            lease_us: 10 * SECOND,
        };
        let mut renewer = store.renewer().await.unwrap();
        assert_eq!(renewer.renew(&[lease]).await, Ok(vec![true]), "{kind}");
    }
    // Time goes on when the clock is where it was.
    clock.step(3_600 * SECOND + 10 * SECOND + 1);
    for store in &stores {
        win(&**store, &request(3, 3, SECOND)).await;
    }
}

/// A process whose clock is off by so much from the store's.
async fn process(store: &Arc<dyn Store>, off_us: i64) -> (Engine, ManualClock) {
    let clock = ManualClock::new();
    clock.step(off_us);
    let builder = Engine::builder(Shared(Arc::clone(store))).namespace("clocks");
    let builder = builder
        .lease(Duration::from_millis(100))
        .grace(Duration::ZERO);
    (builder.clock(clock.clone()).build().await.unwrap(), clock)
}

/// One store for several engines.
#[derive(Debug, Clone)]
struct Shared(Arc<dyn Store>);

#[async_trait::async_trait]
impl Store for Shared {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }
    async fn pin(&self, meta: &idem::store::Meta) -> Result<idem::store::Meta, idem::StoreError> {
        self.0.pin(meta).await
    }
    async fn check(&self) -> Result<Vec<idem::store::Finding>, idem::StoreError> {
        self.0.check().await
    }
    async fn reserve(&self, request: &Reserve) -> Result<Reserved, idem::StoreError> {
        self.0.reserve(request).await
    }
    async fn complete(&self, request: &Complete) -> Result<Written, idem::StoreError> {
        self.0.complete(request).await
    }
    async fn release(&self, request: &idem::store::Release) -> Result<Written, idem::StoreError> {
        self.0.release(request).await
    }
    async fn mark_unknown(
        &self,
        request: &idem::store::MarkUnknown,
    ) -> Result<Written, idem::StoreError> {
        self.0.mark_unknown(request).await
    }
    async fn sweep(&self, request: &idem::store::Sweep) -> Result<u64, idem::StoreError> {
        self.0.sweep(request).await
    }
    async fn renewer(&self) -> Result<Box<dyn idem::store::Renewer>, idem::StoreError> {
        self.0.renewer().await
    }
}

async fn charge(engine: &Engine, order: &str, runs: &Arc<AtomicUsize>) -> Result<u64, Error> {
    let runs = Arc::clone(runs);
    engine
        .call("clocks.charge", order, Ttl::For(Duration::from_secs(60)))
        .on_in_progress(OnInProgress::Reject)
        .on_unknown(OnUnknown::Rerun)
        .run(async move {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok(42)
        })
        .await
}

#[tokio::test]
async fn a_skewed_process_has_no_say() {
    let clock = ManualClock::new();
    let (stores, _folder) = stores(&clock).await;
    for store in &stores {
        let kind = store.kind();
        let runs = Arc::new(AtomicUsize::new(0));
        let (ahead, ahead_clock) = process(store, 600 * SECOND).await;
        let (behind, _) = process(store, -600 * SECOND).await;
        // Neither shortens nor lengthens a TTL.
        for (order, first, second) in [("1", &ahead, &behind), ("2", &behind, &ahead)] {
            let before = runs.load(Ordering::SeqCst);
            assert_eq!(charge(first, order, &runs).await, Ok(42));
            clock.step(60 * SECOND);
            assert_eq!(charge(second, order, &runs).await, Ok(42));
            assert_eq!(runs.load(Ordering::SeqCst), before + 1, "{kind}: replayed");
            clock.step(1);
            assert_eq!(charge(second, order, &runs).await, Ok(42));
            assert_eq!(runs.load(Ordering::SeqCst), before + 2, "{kind}: expired");
        }
        // Nor does one see another's lease as lapsed, however far its clock is.
        let gate = Arc::new(tokio::sync::Notify::new());
        let began = Arc::new(tokio::sync::Notify::new());
        let body = {
            let (gate, began) = (Arc::clone(&gate), Arc::clone(&began));
            async move {
                began.notify_one();
                gate.notified().await;
                Ok::<u64, Error>(7)
            }
        };
        let ttl = Ttl::For(Duration::from_secs(60));
        let running = tokio::spawn(behind.call("clocks.charge", "3", ttl).run(body));
        began.notified().await;
        let before = runs.load(Ordering::SeqCst);
        ahead_clock.step(600 * SECOND);
        let refused = charge(&ahead, "3", &runs).await;
        assert!(refused.is_err_and(|error| error.is_in_progress()), "{kind}");
        gate.notify_one();
        assert_eq!(running.await.unwrap(), Ok(7));
        assert_eq!(charge(&ahead, "3", &runs).await, Ok(7));
        assert_eq!(runs.load(Ordering::SeqCst), before, "{kind}: a second run");
    }
}

/// An engine on `store` that differs from others in what `configure` sets.
async fn configured(
    store: &Arc<dyn Store>,
    configure: impl FnOnce(idem::EngineBuilder) -> idem::EngineBuilder,
) -> Result<Engine, Error> {
    let builder = Engine::builder(Shared(Arc::clone(store))).namespace("clocks");
    configure(builder).build().await
}

#[tokio::test]
async fn engines_of_other_settings_share_one_run() {
    let clock = ManualClock::new();
    let (stores, _folder) = stores(&clock).await;
    for store in &stores {
        let kind = store.kind();
        let runs = Arc::new(AtomicUsize::new(0));
        let careful = configured(store, |builder| {
            builder
                .lease(Duration::from_secs(60))
                .grace(Duration::from_secs(60))
                .max_takeovers(0)
        });
        let hasty = configured(store, |builder| {
            builder
                .lease(Duration::from_millis(100))
                .grace(Duration::ZERO)
                .answer_limit(1)
        });
        let (careful, hasty) = (careful.await.unwrap(), hasty.await.unwrap());
        assert_eq!(charge(&careful, "1", &runs).await, Ok(42));
        // Its own limit is about what it records, not about what it replays.
        assert_eq!(charge(&hasty, "1", &runs).await, Ok(42));
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{kind}");
        // What it ran itself is above that limit: a tombstone for everybody.
        assert_eq!(charge(&hasty, "2", &runs).await, Ok(42));
        for engine in [&careful, &hasty] {
            let error = charge(engine, "2", &runs).await.unwrap_err();
            assert!(
                matches!(error, Error::NotReplayable { .. }),
                "{kind}: {error}"
            );
        }
        assert_eq!(runs.load(Ordering::SeqCst), 2, "{kind}");
        // Another namespace is another record.
        let apart = configured(store, |builder| builder.namespace("apart")).await;
        assert_eq!(charge(&apart.unwrap(), "1", &runs).await, Ok(42));
        assert_eq!(runs.load(Ordering::SeqCst), 3, "{kind}");
        // Another secret would be two records of one key.
        let secret = idem::Secret::new(*b"another secret of 16+").unwrap();
        let error = configured(store, |builder| builder.secret(secret))
            .await
            .unwrap_err();
        let kind_of =
            matches!(&error, Error::Store(e) if e.kind() == idem::StoreErrorKind::Misconfigured);
        assert!(kind_of, "{kind}: {error}");
    }
}

#[tokio::test]
async fn each_call_keeps_to_its_own_policy_on_an_unknown_record() {
    let clock = ManualClock::new();
    let (stores, _folder) = stores(&clock).await;
    for store in &stores {
        let kind = store.kind();
        let runs = Arc::new(AtomicUsize::new(0));
        let none = configured(store, |builder| builder.max_takeovers(0))
            .await
            .unwrap();
        let some = configured(store, |builder| builder.max_takeovers(1))
            .await
            .unwrap();
        let ttl = Ttl::For(Duration::from_secs(60));
        let body = async { Err::<u64, _>(Error::NoEngine) };
        let call = none.call("clocks.charge", "9", ttl);
        let failed = call.on_error(idem::on_error::Unknown).run(body).await;
        assert_eq!(failed, Err(Error::NoEngine));
        // It may take over, but not so often.
        let error = charge(&none, "9", &runs).await.unwrap_err();
        let exhausted = matches!(
            error,
            Error::UnknownOutcome {
                exhausted: true,
                ..
            }
        );
        assert!(exhausted, "{kind}: {error}");
        // It refuses.
        let call = some.call("clocks.charge", "9", ttl);
        let error = call.run(async { Ok::<u64, Error>(0) }).await.unwrap_err();
        let refused = matches!(
            error,
            Error::UnknownOutcome {
                exhausted: false,
                ..
            }
        );
        assert!(refused, "{kind}: {error}");
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        assert_eq!(charge(&some, "9", &runs).await, Ok(42));
        assert_eq!(charge(&none, "9", &runs).await, Ok(42));
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{kind}");
    }
}
