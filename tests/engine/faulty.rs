//! A store that fails on purpose.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use idem::store::{
    Audited, Capability, Complete, Count, Counts, Finding, GiveBack, Holder, Lease, MarkUnknown,
    MemoryStore, Meta, Page, RecordStep, Release, Renewer, Reserve, Reserved, Scan, Seen, Settle,
    Step as KeptStep, Store, StoreAdmin, Sweep, Written,
};
use idem::{RecordId, StoreError, StoreErrorKind};
use tokio::sync::Notify;

/// What goes wrong with one call.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The store does it, and its answer is lost.
    LoseReply,
    /// The store does not do it, and says so.
    Refuse,
    /// The store does not do it until somebody puts a setting right.
    Forbid,
    /// The store does not do it, and never will.
    Break,
    /// The call never answers, and the store does it when the test says so:
    /// [`Faulty::land`].
    Hang,
    /// The call takes this long before the store sees it.
    Delay(Duration),
    /// The call waits here before the store sees it.
    HoldUntil(Arc<Notify>),
    /// The store does it, and its answer waits here.
    HoldReply(Arc<Notify>),
}

/// The memory store behind scripted faults: each call takes the next one of
/// its step, and none is left when the list is empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faulty {
    pub(crate) inner: MemoryStore,
    reserve: Script,
    end: Script,
    renew: Script,
    farewell: Script,
    step: Script,
    step_read: Script,
    sweep: Script,
    look: Script,
    settle: Script,
    stepless: bool,
    adminless: bool,
    unlisted: bool,
    alter: Arc<Mutex<Option<Change>>>,
    late: Late,
}

/// Changes a step of a record.
pub(crate) type Change = fn(&RecordId, &mut KeptStep);

#[derive(Debug, Clone, Default)]
struct Script(Arc<Mutex<Step>>);

#[derive(Debug, Default)]
struct Step {
    faults: VecDeque<Fault>,
    begun: usize,
    ended: usize,
}

/// Calls that hang, to be done later.
#[derive(Clone, Default)]
struct Late(Arc<Mutex<Vec<Landing>>>);

type Landing = Pin<Box<dyn Future<Output = ()> + Send>>;

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Late(..)")
    }
}

impl Script {
    fn add(&self, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().unwrap().faults.extend(faults);
    }

    /// Counts the call, and takes its fault.
    fn next(&self) -> Option<Fault> {
        let mut step = self.0.lock().unwrap();
        step.begun += 1;
        step.faults.pop_front()
    }

    /// Makes a call as its fault says. The call owns what it needs, so that it
    /// can outlive who asked.
    async fn apply<T>(
        &self,
        late: &Late,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let failed = |kind| StoreError::new(kind, "a fault of the test");
        let answer = match self.next() {
            None => call.await,
            Some(Fault::LoseReply) => {
                call.await?;
                Err(failed(StoreErrorKind::Transient).ambiguous())
            }
            Some(Fault::Refuse) => Err(failed(StoreErrorKind::Transient)),
            Some(Fault::Forbid) => Err(failed(StoreErrorKind::Misconfigured)),
            Some(Fault::Break) => Err(failed(StoreErrorKind::Permanent)),
            Some(Fault::Hang) => {
                let landing = Box::pin(async { drop(call.await) });
                late.0.lock().unwrap().push(landing);
                std::future::pending().await
            }
            Some(Fault::Delay(time)) => {
                tokio::time::sleep(time).await;
                call.await
            }
            Some(Fault::HoldUntil(notify)) => {
                notify.notified().await;
                call.await
            }
            Some(Fault::HoldReply(notify)) => {
                let answer = call.await;
                notify.notified().await;
                answer
            }
        };
        self.0.lock().unwrap().ended += 1;
        answer
    }
}

impl Faulty {
    pub(crate) fn behind(inner: MemoryStore) -> Self {
        Self {
            inner,
            ..Self::default()
        }
    }

    pub(crate) fn on_reserve(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.reserve.add(faults);
        self
    }

    /// On complete, release and unknown.
    pub(crate) fn on_end(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.end.add(faults);
        self
    }

    /// On the renewal thread's renewals.
    pub(crate) fn on_renew(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.renew.add(faults);
        self
    }

    /// On what the renewal thread says for dropped attempts.
    pub(crate) fn on_farewell(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.farewell.add(faults);
        self
    }

    /// On keeping a step.
    pub(crate) fn on_step(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.step.add(faults);
        self
    }

    /// On reading the steps of earlier attempts.
    pub(crate) fn on_step_read(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.step_read.add(faults);
        self
    }

    /// On sweeping a batch.
    pub(crate) fn on_sweep(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.sweep.add(faults);
        self
    }

    /// On an operator's look at a record.
    pub(crate) fn on_look(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.look.add(faults);
        self
    }

    /// On an operator's change of a record.
    pub(crate) fn on_settle(self, faults: impl IntoIterator<Item = Fault>) -> Self {
        self.settle.add(faults);
        self
    }

    pub(crate) fn looks(&self) -> usize {
        self.look.0.lock().unwrap().begun
    }

    pub(crate) fn settles(&self) -> usize {
        self.settle.0.lock().unwrap().begun
    }

    pub(crate) fn step_writes(&self) -> usize {
        self.step.0.lock().unwrap().begun
    }

    pub(crate) fn step_reads(&self) -> usize {
        self.step_read.0.lock().unwrap().begun
    }

    /// Says that it keeps no steps.
    pub(crate) fn stepless(mut self) -> Self {
        self.stepless = true;
        self
    }

    /// Has no side for operators.
    pub(crate) fn adminless(mut self) -> Self {
        self.adminless = true;
        self
    }

    /// Keeps no list of finished records.
    pub(crate) fn unlisted(mut self) -> Self {
        self.unlisted = true;
        self
    }

    /// Changes each step that is read.
    pub(crate) fn alter_steps(&self, change: Change) {
        *self.alter.lock().unwrap() = Some(change);
    }

    pub(crate) fn reserves(&self) -> usize {
        self.reserve.0.lock().unwrap().begun
    }

    pub(crate) fn ends(&self) -> usize {
        self.end.0.lock().unwrap().begun
    }

    /// How many farewells have begun.
    pub(crate) fn farewells(&self) -> usize {
        self.farewell.0.lock().unwrap().begun
    }

    /// How many farewells got an answer.
    pub(crate) fn farewells_answered(&self) -> usize {
        self.farewell.0.lock().unwrap().ended
    }

    /// Ends the faults that are left.
    pub(crate) fn heal(&self) {
        for script in [
            &self.reserve,
            &self.end,
            &self.renew,
            &self.farewell,
            &self.step,
        ] {
            script.0.lock().unwrap().faults.clear();
        }
    }

    /// Lets the calls that hang reach the store. Nobody gets their answers.
    pub(crate) async fn land(&self) {
        let landings = std::mem::take(&mut *self.late.0.lock().unwrap());
        assert!(!landings.is_empty(), "no call hangs");
        for landing in landings {
            landing.await;
        }
    }
}

#[async_trait]
impl Store for Faulty {
    fn kind(&self) -> &'static str {
        "faulty"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        self.inner.pin(meta).await
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.inner.check().await
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        let (inner, request) = (self.inner.clone(), request.clone());
        let call = async move { inner.reserve(&request).await };
        self.reserve.apply(&self.late, call).await
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        let (inner, request) = (self.inner.clone(), request.clone());
        let call = async move { inner.complete(&request).await };
        self.end.apply(&self.late, call).await
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        let (inner, request) = (self.inner.clone(), request.clone());
        let call = async move { inner.release(&request).await };
        self.end.apply(&self.late, call).await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        let (inner, request) = (self.inner.clone(), request.clone());
        let call = async move { Store::mark_unknown(&inner, &request).await };
        self.end.apply(&self.late, call).await
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        let (inner, request) = (self.inner.clone(), *request);
        let call = async move { inner.sweep(&request).await };
        self.sweep.apply(&self.late, call).await
    }

    async fn record_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        let (inner, request) = (self.inner.clone(), request.clone());
        let call = async move { inner.record_step(&request).await };
        self.step.apply(&self.late, call).await
    }

    async fn steps(&self, holder: &Holder) -> Result<Option<Vec<KeptStep>>, StoreError> {
        let (inner, holder) = (self.inner.clone(), *holder);
        let change = *self.alter.lock().unwrap();
        let call = async move {
            let mut steps = inner.steps(&holder).await?;
            if let Some(change) = change {
                for step in steps.iter_mut().flatten() {
                    change(&holder.id, step);
                }
            }
            Ok(steps)
        };
        self.step_read.apply(&self.late, call).await
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        (!self.adminless).then_some(self as &dyn StoreAdmin)
    }

    fn lacks(&self) -> &'static [Capability] {
        if self.stepless {
            &[Capability::Steps]
        } else if self.adminless {
            &[Capability::Admin, Capability::ListFinished]
        } else if self.unlisted {
            &[Capability::ListFinished]
        } else {
            &[]
        }
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl StoreAdmin for Faulty {
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError> {
        if self.unlisted && !request.standing.is_open() {
            let kind = StoreErrorKind::Misconfigured;
            return Err(StoreError::new(kind, "there is no list"));
        }
        self.inner.scan(request).await
    }

    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError> {
        let (inner, id) = (self.inner.clone(), *id);
        let call = async move { inner.get(&id).await };
        self.look.apply(&self.late, call).await
    }

    async fn settle(&self, request: &Settle) -> Result<Written, StoreError> {
        let (inner, request) = (self.inner.clone(), request.clone());
        let call = async move { inner.settle(&request).await };
        self.settle.apply(&self.late, call).await
    }

    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError> {
        self.inner.audit(id).await
    }

    async fn count(&self, request: &Count) -> Result<Counts, StoreError> {
        self.inner.count(request).await
    }
}

/// The renewal thread's connection.
#[async_trait]
impl Renewer for Faulty {
    async fn renew(&mut self, leases: &[Lease]) -> Result<Vec<bool>, StoreError> {
        let (mut inner, leases) = (self.inner.clone(), leases.to_vec());
        let call = async move { inner.renew(&leases).await };
        self.renew.apply(&self.late, call).await
    }

    async fn mark_unknown(&mut self, request: &MarkUnknown) -> Result<Written, StoreError> {
        let (mut inner, request) = (self.inner.clone(), request.clone());
        let call = async move { Renewer::mark_unknown(&mut inner, &request).await };
        self.farewell.apply(&self.late, call).await
    }

    async fn give_back(&mut self, request: &GiveBack) -> Result<Written, StoreError> {
        let (mut inner, request) = (self.inner.clone(), request.clone());
        let call = async move { inner.give_back(&request).await };
        self.farewell.apply(&self.late, call).await
    }
}
