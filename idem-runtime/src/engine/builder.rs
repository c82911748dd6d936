//! Building an engine: every knob, and the checks at start.

use std::time::Duration;

use super::call::LEASES;
use super::operations::Operations;
use super::renewal::Renewals;
use super::tracker::Tracker;
use super::{Engine, Inner, Limits, cache, conclude};
use crate::clock::{Clock, SystemClock};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::identity::{FORMAT, Identity, Secret};
use crate::singleflight::Flights;
use crate::store::{Finding, Meta, Store};
use crate::sync::{Arc, AtomicBool, Notify};
use crate::telemetry;

/// How to build an [`Engine`].
///
/// | knob | default | limits | meaning |
/// |---|---|---|---|
/// | [`namespace`](Self::namespace) | `default` | 1 to 128 bytes | one per application or environment; part of every identity |
/// | [`secret`](Self::secret) | none | at least 16 bytes | keys the digests, so that values cannot be guessed from them |
/// | [`lease`](Self::lease) | 30 s | 100 ms to 1 day | how long an attempt counts as alive without a renewal |
/// | [`grace`](Self::grace) | 5 s | up to 1 day | how much later it counts as lapsed; at least the largest step of the store's clock |
/// | [`max_run`](Self::max_run) | 15 min | at least the lease | how long a lease is renewed; the body is not aborted then |
/// | [`max_takeovers`](Self::max_takeovers) | 5 | 0 to 1,000 | takeovers of one record under `rerun` and `recover` |
/// | [`answer_limit`](Self::answer_limit) | 1 MiB | 1 byte to 64 MiB | larger answers become tombstones |
/// | [`store_timeout`](Self::store_timeout) | 5 s | 10 ms to 5 min | one call to the store |
/// | [`reserve_timeout`](Self::reserve_timeout) | 10 s | the store timeout to 10 min | a reservation with all its resends |
/// | [`max_waiters`](Self::max_waiters) | 10,000 | 0 and more | calls of this process that wait; those above get `InProgress` at once |
/// | [`cache`](Self::cache) | 0, which is off | 64 KiB to 64 GiB | memory for finished answers, which are then replayed without asking the store |
/// | [`cache_for`](Self::cache_for) | 1 min | 1 ms to 1 h | how long such an answer is used at most; one that is forgotten through another engine, too |
/// | [`strict`](Self::strict) | off | | warnings at start and derived names are errors |
/// | [`accept_loss`](Self::accept_loss) | none | | findings that would fail the start |
///
/// Durations have a resolution of a microsecond.
#[derive(Debug)]
#[must_use = "call `build`"]
pub struct EngineBuilder {
    store: Arc<dyn Store>,
    namespace: String,
    secret: Option<Secret>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    cache_bytes: usize,
    cache_for: Duration,
    accepted: Vec<Finding>,
}

impl EngineBuilder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            namespace: "default".to_owned(),
            secret: None,
            clock: Arc::new(SystemClock),
            limits: Limits {
                lease: Duration::from_secs(30),
                grace: Duration::from_secs(5),
                max_run: Duration::from_secs(15 * 60),
                max_takeovers: 5,
                answer_limit: 1024 * 1024,
                store_timeout: Duration::from_secs(5),
                reserve_timeout: Duration::from_secs(10),
                max_waiters: 10_000,
                strict: false,
            },
            cache_bytes: 0,
            cache_for: cache::DEFAULT_AGE,
            accepted: Vec::new(),
        }
    }

    /// Sets the namespace: the same key in another one is another record.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the secret that keys the digests. All engines on one store must
    /// have the same one, from its first use on: none can be added, changed or
    /// removed later.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Sets how long an attempt counts as alive without a renewal. It is
    /// renewed every third of it.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.limits.lease = lease;
        self
    }

    /// Sets how much later than its lease an attempt counts as lapsed.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limits.grace = grace;
        self
    }

    /// Sets how long a lease is renewed. A body that runs longer is not
    /// aborted, but a warning is logged, its record lapses, and its answer is
    /// recorded only if nobody took over.
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.limits.max_run = max_run;
        self
    }

    /// Sets how often one record may be taken over before its outcome stays
    /// unknown until somebody settles it.
    pub fn max_takeovers(mut self, takeovers: u32) -> Self {
        self.limits.max_takeovers = i32::try_from(takeovers).unwrap_or(i32::MAX);
        self
    }

    /// Sets the largest answer that is stored, in bytes as the codec writes it.
    pub fn answer_limit(mut self, bytes: usize) -> Self {
        self.limits.answer_limit = bytes;
        self
    }

    /// Sets how long one call to the store may take.
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        self.limits.store_timeout = timeout;
        self
    }

    /// Sets how long a reservation with all its resends may take.
    pub fn reserve_timeout(mut self, timeout: Duration) -> Self {
        self.limits.reserve_timeout = timeout;
        self
    }

    /// Sets how many calls of this process may wait for other attempts.
    pub fn max_waiters(mut self, waiters: usize) -> Self {
        self.limits.max_waiters = waiters;
        self
    }

    /// Sets how much memory finished answers may take in this process, in bytes;
    /// 0, the default, keeps none.
    ///
    /// A call whose answer is there gets it without asking the store, and is
    /// counted as a replay. An answer is there after it was recorded or replayed
    /// by this engine, for [`cache_for`](Self::cache_for), and never past its TTL;
    /// the ones that are used least make room. Each counts half a KiB beside its own
    /// bytes, and one above a sixteenth of the memory is not kept. Calls with a
    /// `version`, and those in their caller's transaction, neither use it nor add
    /// to it.
    ///
    /// # A forgotten answer
    /// A [`forget`](crate::admin::RecordRef::forget) through this engine, and its
    /// clones, is seen at once. One through another engine is not, be it in this
    /// process, in another one or in the command `idem`: the old answer may be
    /// replayed here for as long as `cache_for` says. The same is true of a store
    /// that is emptied or restored, of one whose clock is set forward, and of an
    /// operation that some callers call with a version and others without.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// let builder = idem::Engine::builder(idem::store::MemoryStore::new());
    /// let engine = builder.cache(64 << 20).cache_for(Duration::from_secs(10)).build().await?;
    /// let hour = Duration::from_secs(3_600);
    /// for _ in 0..2 {
    ///     let call = engine.call("payments.charge", &"o-7", hour);
    ///     assert_eq!(call.run(async { Ok::<_, idem::Error>(42) }).await?, 42);
    /// }
    /// // The second answer came from memory; this asks the store.
    /// assert!(engine.record("payments.charge").key(&"o-7").get().await?.is_some());
    /// # Ok(()) }
    /// ```
    pub fn cache(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets how long an answer in the [cache](Self::cache) is used after the store
    /// was asked for it, or told: at most for what is left of its TTL.
    pub fn cache_for(mut self, age: Duration) -> Self {
        self.cache_for = age;
        self
    }

    /// Makes every finding at start an error, and refuses derived names.
    pub fn strict(mut self) -> Self {
        self.limits.strict = true;
        self
    }

    /// Accepts a finding that voids at-most-once, knowing what may be lost.
    pub fn accept_loss(mut self, finding: Finding) -> Self {
        self.accepted.push(finding);
        self
    }

    /// Sets this process's clock, for tests.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Checks the store, pins what all engines on it agree on, and starts the
    /// renewal thread.
    ///
    /// # Cancel safety
    /// Dropping the future leaves at most the store's meta row behind.
    ///
    /// # Errors
    /// - [`Error::Misuse`]: a knob is outside of its limits.
    /// - [`Error::Store`] of kind `Misconfigured`: another secret or identity
    ///   format is pinned, or a finding voids the promise and was not accepted.
    /// - [`Error::Store`]: the store does not answer.
    pub async fn build(mut self) -> Result<Engine, Error> {
        self.check_limits()?;
        let cache = cache::Cache::new(self.cache_bytes, self.cache_for)?;
        let identity = Identity::new(self.secret.as_ref(), self.namespace.clone());
        let findings = self.check_store().await?;
        let meta = self.pin(&identity).await?;
        let renewals = Renewals::start(Arc::clone(&self.store), Arc::clone(&self.clock)).await?;
        telemetry::describe();
        telemetry::begin();
        telemetry::started(&self.store, &self.namespace, &self.limits, &findings, &meta);
        Ok(Engine {
            inner: Arc::new(Inner {
                store: self.store,
                identity,
                instance: meta.instance,
                clock: self.clock,
                limits: self.limits,
                flights: Arc::new(Flights::new()),
                cache,
                renewals,
                #[cfg(feature = "testing")]
                rehearsal: super::rehearsal::Rehearsal::default(),
                operations: Operations::default(),
                attempts: Tracker::shown_as(telemetry::names::HELD),
                tasks: Tracker::default(),
                waiters: Tracker::shown_as(telemetry::names::WAITING),
                closing: AtomicBool::new(false),
                closed: Notify::new(),
                drained: AtomicBool::new(false),
                runtime: tokio::runtime::Handle::try_current().ok(),
            }),
        })
    }

    fn check_limits(&self) -> Result<(), Error> {
        const DAY: Duration = Duration::from_secs(86_400);
        let limits = &self.limits;
        let wrong = |what: &str| {
            Err(Error::misuse_at_start(format!(
                "the engine cannot start: {what}"
            )))
        };
        if self.namespace.is_empty() || self.namespace.len() > 128 {
            return wrong("a namespace has 1 to 128 bytes");
        }
        if !LEASES.contains(&limits.lease) {
            return wrong("the lease is 100 ms to 1 day");
        }
        if limits.grace > DAY {
            return wrong("the grace is at most 1 day");
        }
        if limits.max_run < limits.lease {
            return wrong("`max_run` is at least the lease");
        }
        if limits.max_takeovers > 1_000 {
            return wrong("`max_takeovers` is at most 1,000");
        }
        if !(1..=64 * 1024 * 1024).contains(&limits.answer_limit) {
            return wrong("the answer limit is 1 byte to 64 MiB");
        }
        if !(Duration::from_millis(10)..=Duration::from_secs(300)).contains(&limits.store_timeout) {
            return wrong("the store timeout is 10 ms to 5 min");
        }
        if !(limits.store_timeout..=Duration::from_secs(600)).contains(&limits.reserve_timeout) {
            return wrong("the reserve timeout is the store timeout to 10 min");
        }
        Ok(())
    }

    async fn check_store(&mut self) -> Result<Vec<Finding>, Error> {
        let mut findings = conclude::bounded(self.limits.store_timeout, self.store.check()).await?;
        if self.secret.is_none() {
            findings.push(Finding::NoSecret);
        }
        if let Some(largest) = self.store.largest_answer()
            && largest < self.limits.answer_limit
        {
            self.limits.answer_limit = largest;
            findings.push(Finding::SmallPackets);
        }
        let fatal: Vec<_> = findings
            .iter()
            .filter(|finding| {
                finding.voids_at_most_once()
                    || (self.limits.strict && finding.is_refused_when_strict())
            })
            .filter(|finding| !self.accepted.contains(finding))
            .map(ToString::to_string)
            .collect();
        if fatal.is_empty() {
            return Ok(findings);
        }
        Err(Error::Store(StoreError::new(
            StoreErrorKind::Misconfigured,
            format!(
                "the engine does not start: {}; correct it, or accept it by name with `accept_loss`",
                fatal.join("; ")
            ),
        )))
    }

    async fn pin(&self, identity: &Identity) -> Result<Meta, Error> {
        let mut instance = [0; 16];
        getrandom::fill(&mut instance).map_err(|_| {
            Error::misuse_at_start(
                "the operating system gave no random bytes for the store's instance id",
            )
        })?;
        let ours = Meta {
            format: FORMAT.to_owned(),
            instance,
            secret_check: identity.check_value(),
        };
        let pinned = conclude::bounded(self.limits.store_timeout, self.store.pin(&ours)).await?;
        let what = if pinned.format != ours.format {
            "the records of this store have another identity format; use the version of idem that wrote them; an empty store forgets every answer"
        } else if pinned.secret_check != ours.secret_check {
            "this store was first used with another secret, or without one; two secrets would give one key two records and run its body twice; set the same secret in every process; an empty store forgets every answer"
        } else {
            return Ok(pinned);
        };
        Err(Error::Store(StoreError::new(
            StoreErrorKind::Misconfigured,
            format!("the engine does not start: {what}"),
        )))
    }
}
