//! One try at running the body, from the won reservation to its end.

use std::collections::HashSet;

use super::Inner;
use super::call::Prepared;
use super::steps::Steps;
use super::tracker::Tracked;
use crate::identity::RecordId;
use crate::record::UnknownReason;
use crate::singleflight::Lead;
use crate::store::{GiveBack, Holder, MarkUnknown, Won};
use crate::sync::{Arc, AtomicBool, AtomicI64, AtomicU8, Mutex, Ordering, lock};

/// How far an attempt has come; decides what a drop means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing of the body was polled: a drop gives the reservation back.
    Reserved = 0,
    /// The recovery's probe runs: a drop leaves it undecided.
    Probing = 1,
    /// The body runs: a drop leaves the outcome unknown.
    Running = 2,
    /// The body returned: what is left is to record it.
    Returned = 3,
}

/// What the body, the renewal thread and the engine share about an attempt.
#[derive(Debug)]
pub(crate) struct AttemptState {
    pub(crate) holder: Holder,
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) won: Won,
    phase: AtomicU8,
    /// Until when this process believes in its lease, on the engine's clock.
    deadline_us: AtomicI64,
    /// Until when the lease is renewed.
    renew_until_us: AtomicI64,
    lost: AtomicBool,
    /// The probe said that nothing had happened.
    probed: AtomicBool,
    /// The probe came to no decision.
    undecided: AtomicBool,
    /// The probe found the answer.
    recovered: AtomicBool,
    /// It was counted as unknown.
    unknown: AtomicBool,
    /// It lives and dies with its caller's transaction, without a lease.
    in_transaction: bool,
    /// Records of inner calls that found no answer.
    taints: Mutex<HashSet<[u8; 32]>>,
    pub(crate) steps: Steps,
    #[cfg(feature = "testing")]
    runs: super::rehearsal::Runs,
}

impl AttemptState {
    /// Makes the state of an attempt in its caller's transaction.
    pub(crate) fn in_transaction(
        #[cfg_attr(
            not(feature = "testing"),
            expect(unused_variables, reason = "only tests count runs")
        )]
        engine: &Inner,
        prepared: &Arc<Prepared>,
        holder: Holder,
        won: Won,
    ) -> Self {
        Self {
            holder,
            prepared: Arc::clone(prepared),
            won,
            phase: AtomicU8::new(Phase::Reserved as u8),
            deadline_us: AtomicI64::new(i64::MAX),
            renew_until_us: AtomicI64::new(i64::MAX),
            lost: AtomicBool::new(false),
            probed: AtomicBool::new(false),
            undecided: AtomicBool::new(false),
            recovered: AtomicBool::new(false),
            unknown: AtomicBool::new(false),
            in_transaction: true,
            steps: Steps::default(),
            taints: Mutex::default(),
            #[cfg(feature = "testing")]
            runs: engine.rehearsal.runs_of(&prepared.operation),
        }
    }

    /// Whether it lives and dies with its caller's transaction.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.in_transaction
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::SeqCst) {
            0 => Phase::Reserved,
            1 => Phase::Probing,
            2 => Phase::Running,
            _ => Phase::Returned,
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        #[cfg(feature = "testing")]
        if phase == Phase::Running && !self.is_recovered() {
            self.runs.add();
        }
        self.phase.store(phase as u8, Ordering::SeqCst);
    }

    pub(crate) fn deadline_us(&self) -> i64 {
        self.deadline_us.load(Ordering::SeqCst)
    }

    /// Notes a renewal that was confirmed for a request sent at `sent_us`.
    pub(crate) fn renewed(&self, sent_us: i64) {
        let deadline = sent_us.saturating_add(believed(self.prepared.lease_us()));
        self.deadline_us.fetch_max(deadline, Ordering::SeqCst);
    }

    pub(crate) fn is_renewed_at(&self, now_us: i64) -> bool {
        now_us < self.renew_until_us.load(Ordering::SeqCst)
    }

    /// Renews without an end: the body has returned, only the store is slow.
    pub(crate) fn renew_until_recorded(&self) {
        self.renew_until_us.store(i64::MAX, Ordering::SeqCst);
    }

    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    /// Whether the lease can no longer be believed in.
    pub(crate) fn is_lost_at(&self, now_us: i64) -> bool {
        self.lost.load(Ordering::SeqCst) || now_us >= self.deadline_us()
    }

    /// Whether the outside world must be asked before the body runs.
    pub(crate) fn must_probe(&self) -> bool {
        self.won.doubt && self.prepared.on_unknown == crate::policy::OnUnknown::Recover
    }

    pub(crate) fn set_not_done(&self) {
        self.probed.store(true, Ordering::SeqCst);
        self.enter(Phase::Running);
    }

    pub(crate) fn is_probed(&self) -> bool {
        self.probed.load(Ordering::SeqCst)
    }

    pub(crate) fn set_undecided(&self) {
        self.undecided.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_undecided(&self) -> bool {
        self.undecided.load(Ordering::SeqCst)
    }

    pub(crate) fn set_recovered(&self) {
        self.recovered.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_recovered(&self) -> bool {
        self.recovered.load(Ordering::SeqCst)
    }

    /// Whether nobody has said yet that its outcome is unknown.
    pub(crate) fn is_first_unknown(&self) -> bool {
        !self.unknown.swap(true, Ordering::SeqCst)
    }

    /// Notes that an inner call found no answer.
    pub(crate) fn taint(&self, record: Option<RecordId>) {
        lock(&self.taints).insert(record.map_or([0; 32], |id| *id.as_bytes()));
    }

    /// Notes that an inner call found its answer after all.
    pub(crate) fn clear_taint(&self, record: RecordId) {
        lock(&self.taints).remove(record.as_bytes());
    }

    pub(crate) fn is_tainted(&self) -> bool {
        !lock(&self.taints).is_empty()
    }

    pub(crate) fn give_back(&self) -> GiveBack {
        GiveBack {
            id: self.holder.id,
            claim: self.holder.claim,
            ttl_us: self.prepared.ttl_us,
        }
    }

    pub(crate) fn mark_unknown(&self, reason: UnknownReason) -> MarkUnknown {
        MarkUnknown {
            holder: self.holder,
            reason,
            undecided_retry_us: None,
        }
    }

    /// A probe without a decision: the next one waits as long as the outcome
    /// has been in doubt, between a third of the lease and five minutes, so
    /// that the pauses double.
    pub(crate) fn mark_undecided(&self) -> MarkUnknown {
        const LONGEST_US: i64 = 300_000_000;
        let shortest = self.prepared.lease_us() / 3;
        MarkUnknown {
            holder: self.holder,
            reason: UnknownReason::Undecided,
            undecided_retry_us: Some(
                self.won
                    .doubt_for_us
                    .clamp(shortest.min(LONGEST_US), LONGEST_US),
            ),
        }
    }
}

/// The part of a lease that its holder believes in: it ends before the store's.
fn believed(lease_us: i64) -> i64 {
    const MARGIN_US: i64 = 500_000;
    lease_us - std::cmp::min(lease_us / 10, MARGIN_US)
}

/// The right to run the body once.
///
/// Dropping it does no I/O and needs no runtime: it queues to the renewal
/// thread what the drop means in this phase.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) engine: Arc<Inner>,
    pub(crate) state: Arc<AttemptState>,
    /// Followers in this process that wait for the answer.
    pub(crate) lead: Option<Lead>,
    ended: bool,
    _tracked: Tracked,
}

impl Attempt {
    /// Takes up a won reservation, whose request was first sent at `sent_us`.
    pub(crate) fn start(
        engine: &Arc<Inner>,
        prepared: &Arc<Prepared>,
        holder: Holder,
        won: Won,
        sent_us: i64,
        lead: Option<Lead>,
    ) -> Self {
        let max_run = crate::clock::micros(prepared.max_run);
        let state = Arc::new(AttemptState {
            holder,
            prepared: Arc::clone(prepared),
            won,
            phase: AtomicU8::new(Phase::Reserved as u8),
            deadline_us: AtomicI64::new(sent_us.saturating_add(believed(prepared.lease_us()))),
            renew_until_us: AtomicI64::new(sent_us.saturating_add(max_run)),
            lost: AtomicBool::new(false),
            probed: AtomicBool::new(false),
            undecided: AtomicBool::new(false),
            recovered: AtomicBool::new(false),
            unknown: AtomicBool::new(false),
            in_transaction: false,
            taints: Mutex::default(),
            steps: Steps::default(),
            #[cfg(feature = "testing")]
            runs: engine.rehearsal.runs_of(&prepared.operation),
        });
        engine.renewals.hold(&state);
        Self {
            engine: Arc::clone(engine),
            state,
            lead,
            ended: false,
            _tracked: engine.attempts.track(),
        }
    }

    /// Whether this process may still believe in its lease, asking the store if
    /// the reply took longer than that.
    pub(crate) async fn is_current(&self) -> bool {
        let now_us = || crate::clock::micros(self.engine.clock.monotonic());
        !self.state.is_lost_at(now_us())
            || (self.engine.renewals.confirm(&self.state).await == Ok(true)
                && !self.state.is_lost_at(now_us()))
    }

    /// Says that the store has been told how this attempt ended, or that there
    /// is nothing left to tell.
    pub(crate) fn end(mut self) -> Option<Lead> {
        self.ended = true;
        self.lead.take()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.engine.renewals.let_go(&self.state);
        if self.ended {
            return;
        }
        let until = crate::clock::from_micros(self.state.prepared.lease_us());
        let unknown = |reason| {
            let request = self.state.mark_unknown(reason);
            self.engine
                .renewals
                .mark_unknown(&self.state, request, until);
        };
        match self.state.phase() {
            Phase::Reserved => {
                crate::telemetry::given_back(&self.state);
                let request = self.state.give_back();
                self.engine.renewals.give_back(request, until, true);
            }
            Phase::Probing => {
                let request = self.state.mark_undecided();
                self.engine
                    .renewals
                    .mark_unknown(&self.state, request, until);
            }
            // Also after the body: in the user's `Serialize`, say.
            Phase::Running | Phase::Returned if std::thread::panicking() => {
                unknown(UnknownReason::Panicked);
            }
            Phase::Running if !self.engine.is_closing() => unknown(UnknownReason::Cancelled),
            // The task that records the answer ended with its runtime.
            Phase::Running | Phase::Returned => unknown(UnknownReason::ShutDown),
        }
    }
}
