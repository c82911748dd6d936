//! A front and a store that count, fail and wait on request.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem::record::Standing;
use idem::store::tiered::{Front, MemoryFront};
use idem::store::{
    Capability, Complete, Finding, MarkUnknown, MemoryStore, Meta, Release, Renewer, Reserve,
    Reserved, Standings, Store, StoreAdmin, Sweep, Written,
};
use idem::testing::ManualClock;
use idem::{StoreError, StoreErrorKind};

/// A memory front that does what the test says, and remembers what it was
/// asked.
#[derive(Debug, Clone)]
pub(crate) struct Fake {
    pub(crate) inner: MemoryFront,
    mode: Arc<Mutex<Mode>>,
    asked: Arc<Mutex<Vec<&'static str>>>,
    /// Fills that are under way.
    late: Arc<Mutex<Vec<Fill>>>,
}

type Fill = (String, Vec<u8>, Duration);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Up,
    Fails,
    Hangs,
    DelaysFills,
    /// Loses every entry before the step of this number, and after it.
    FlushesAt(usize),
}

impl Fake {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self::on(MemoryFront::with(MemoryFront::MOST_BYTES, clock.clone()))
    }

    pub(crate) fn on(inner: MemoryFront) -> Self {
        Self {
            inner,
            mode: Arc::new(Mutex::new(Mode::Up)),
            asked: Arc::default(),
            late: Arc::default(),
        }
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    pub(crate) fn is_up(&self) {
        self.set(Mode::Up);
    }

    pub(crate) fn fails(&self) {
        self.set(Mode::Fails);
    }

    pub(crate) fn hangs(&self) {
        self.set(Mode::Hangs);
    }

    pub(crate) fn delays_fills(&self) {
        self.set(Mode::DelaysFills);
    }

    pub(crate) fn flushes_at(&self, step: usize) {
        self.set(Mode::FlushesAt(step));
    }

    /// Lets the fills that are under way land.
    pub(crate) async fn land(&self) -> usize {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        for (key, entry, ttl) in &late {
            self.inner.fill(key, entry, *ttl).await.unwrap();
        }
        late.len()
    }

    /// The steps that it was asked for.
    pub(crate) fn asked(&self) -> Vec<&'static str> {
        self.asked.lock().unwrap().clone()
    }

    async fn step<T>(
        &self,
        step: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let number = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(step);
            asked.len()
        };
        let mode = *self.mode.lock().unwrap();
        match mode {
            Mode::Fails => Err(StoreError::new(StoreErrorKind::Transient, "a fault")),
            Mode::Hangs => std::future::pending().await,
            Mode::FlushesAt(at) if at == number => {
                self.inner.flush();
                let answer = call.await;
                self.inner.flush();
                answer
            }
            Mode::Up | Mode::DelaysFills | Mode::FlushesAt(_) => call.await,
        }
    }
}

#[async_trait]
impl Front for Fake {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.step("get", self.inner.get(key)).await
    }

    async fn fill(&self, key: &str, entry: &[u8], ttl: Duration) -> Result<(), StoreError> {
        if *self.mode.lock().unwrap() == Mode::DelaysFills {
            let fill = (key.to_owned(), entry.to_vec(), ttl);
            self.late.lock().unwrap().push(fill);
            return Ok(());
        }
        self.step("fill", self.inner.fill(key, entry, ttl)).await
    }

    async fn hint(&self, key: &str, entry: &[u8], ttl: Duration) -> Result<(), StoreError> {
        self.step("hint", self.inner.hint(key, entry, ttl)).await
    }

    async fn clear_hint(&self, key: &str) -> Result<(), StoreError> {
        self.step("clear_hint", self.inner.clear_hint(key)).await
    }

    async fn block(&self, key: &str, ttl: Duration) -> Result<(), StoreError> {
        self.step("block", self.inner.block(key, ttl)).await
    }
}

/// A memory store that counts reservations, takes time, and loses replies.
#[derive(Debug, Clone)]
pub(crate) struct Back {
    pub(crate) inner: MemoryStore,
    clock: ManualClock,
    reserves: Arc<AtomicUsize>,
    takes_us: Arc<AtomicI64>,
    loses_replies: Arc<AtomicBool>,
    /// The last reply to a reservation.
    last: Arc<Mutex<Option<Reserved>>>,
}

impl Back {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self {
            inner: MemoryStore::with_clock(clock.clone()),
            clock: clock.clone(),
            reserves: Arc::default(),
            takes_us: Arc::default(),
            loses_replies: Arc::default(),
            last: Arc::default(),
        }
    }

    pub(crate) fn reserves(&self) -> usize {
        self.reserves.load(Ordering::SeqCst)
    }

    /// Lets so much time pass between a reply and its arrival.
    pub(crate) fn takes(&self, us: i64) {
        self.takes_us.store(us, Ordering::SeqCst);
    }

    pub(crate) fn loses_replies(&self, loses: bool) {
        self.loses_replies.store(loses, Ordering::SeqCst);
    }

    pub(crate) fn take_last(&self) -> Option<Reserved> {
        self.last.lock().unwrap().take()
    }

    fn lost<T>(&self, reply: T) -> Result<T, StoreError> {
        if self.loses_replies.load(Ordering::SeqCst) {
            return Err(StoreError::new(StoreErrorKind::Transient, "lost").ambiguous());
        }
        Ok(reply)
    }
}

#[async_trait]
impl Store for Back {
    fn kind(&self) -> &'static str {
        "fake"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        self.inner.pin(meta).await
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.inner.check().await
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        self.reserves.fetch_add(1, Ordering::SeqCst);
        let reply = self.inner.reserve(request).await?;
        self.clock.step(self.takes_us.load(Ordering::SeqCst));
        *self.last.lock().unwrap() = Some(reply.clone());
        self.lost(reply)
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        let written = self.inner.complete(request).await?;
        self.lost(written)
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        self.inner.release(request).await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.inner.mark_unknown(request).await
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        self.inner.sweep(request).await
    }

    async fn record_step(&self, request: &idem::store::RecordStep) -> Result<Written, StoreError> {
        self.inner.record_step(request).await
    }

    async fn steps(
        &self,
        holder: &idem::store::Holder,
    ) -> Result<Option<Vec<idem::store::Step>>, StoreError> {
        self.inner.steps(holder).await
    }

    async fn standings(&self, request: &Standings) -> Result<Vec<Option<Standing>>, StoreError> {
        self.inner.standings(request).await
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.inner.admin()
    }

    fn lacks(&self) -> &'static [Capability] {
        self.inner.lacks()
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        self.inner.renewer().await
    }
}
