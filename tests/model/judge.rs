//! What was seen to happen, kept apart from the row, and the promises that are
//! judged by it.

use std::collections::BTreeMap;

use idem::record::{Record, State};
use idem::store::{Reserved, Won};

use crate::world::{GRACE, LEASE, MAX_TAKEOVERS, Number, Policy, TTL, World};

/// A promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Promise {
    /// Where every caller refuses, an effect happens once until its TTL ends.
    OneEffect,
    /// Where callers refuse or recover, an effect of whoever holds the key
    /// happens once: only one that was superseded may still act.
    OneEffectOfHolders,
    /// A caller that refuses does not win a key whose effect has happened.
    RefuseNeverRepeats,
    /// A key is won only when nobody else can believe to hold it.
    NoOverlap,
    /// Whoever is told to have won is the last to have won.
    OneWinner,
    /// A claim wins once, or nobody waits for what it wins. The row tells that
    /// of the last winner only.
    WinsOnce,
    /// Whoever holds the key and asks again is told so.
    NotLockedOut,
    /// Nothing happens without an acknowledged reservation.
    FailClosed,
    FencesGrow,
    /// Only the last winner ends an attempt.
    HoldersWrite,
    /// The last winner's completion is always accepted.
    TruthIsTaken,
    /// One recorded answer, kept until its TTL ends.
    OneAnswer,
    /// A replay is the recorded answer.
    SameAnswer,
    /// What may have had an effect is not released.
    DoubtStays,
    TakeoversBounded,
    /// A recovery waits before it asks the outside world again.
    ProbesBackOff,
    /// Sweep deletes what is over, and nothing else.
    SweepOnlyOver,
    /// If all processes died now, a later caller would get an answer.
    NeverStuck,
}

/// What cannot be told from the row, since a broken protocol would lie there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Seen {
    pub(crate) broken: Option<Promise>,
    /// Until when the store has promised the key to claims that may still run.
    pub(crate) grants: BTreeMap<Number, Grant>,
    pub(crate) last_winner: Option<Number>,
    last_fence: i64,
    completed_fence: i64,
    /// The recorded answer, and until when it counts.
    pub(crate) recorded: Option<(Number, i64)>,
    /// Whose effect happened last, since the last recorded answer ended.
    pub(crate) effect: Option<Number>,
    effects: u8,
    effects_of_holders: u8,
    pub(crate) taken_over: i32,
    not_before: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    lease_end: i64,
    /// Won before the last recorded answer ended.
    old: bool,
}

/// Places that the exploration must come by, or it proves little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Landmark {
    Replayed,
    Resent,
    TakenOver,
    Recovered,
    Undecided,
    Superseded,
    LateTruth,
    LandedLate,
    GivenBack,
    Expired,
    Swept,
}

/// The landmarks of one step; no part of what makes two states differ.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Passed(pub(crate) u32);

impl Landmark {
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl PartialEq for Passed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Passed {}

impl std::hash::Hash for Passed {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl World {
    pub(crate) fn breaks(&mut self, promise: Promise) {
        self.seen.broken.get_or_insert(promise);
    }

    fn unless(&mut self, kept: bool, promise: Promise) {
        if !kept {
            self.breaks(promise);
        }
    }

    pub(crate) fn passes(&mut self, landmark: Landmark) {
        self.passed.0 |= landmark.bit();
    }

    pub(crate) fn judge_reserved(
        &mut self,
        from: usize,
        claim: Number,
        before: Option<&Record>,
        reserved: &Reserved,
    ) {
        let (now, policy) = (self.now, self.callers[from].takeover);
        match reserved {
            Reserved::Won(won) if won.resent => {
                let last = self.seen.last_winner == Some(claim);
                self.unless(last, Promise::OneWinner);
                self.passes(Landmark::Resent);
                self.extend(claim);
            }
            Reserved::Won(won) => self.judge_won(policy, claim, won),
            Reserved::Completed { answer, .. } => {
                let recorded = self.seen.recorded;
                let same =
                    recorded.is_some_and(|(value, until)| answer.bytes == [value] && now <= until);
                self.unless(same, Promise::SameAnswer);
                self.passes(Landmark::Replayed);
            }
            _ => {
                let kept = self.seen.recorded.is_some_and(|(_, until)| now <= until);
                self.unless(!kept, Promise::OneAnswer);
                let own = before.is_some_and(|record| {
                    record.state == State::InProgress && record.claim == crate::world::claim(claim)
                });
                self.unless(!own, Promise::NotLockedOut);
            }
        }
    }

    fn judge_won(&mut self, policy: Policy, claim: Number, won: &Won) {
        let now = self.now;
        if let Some((_, until)) = self.seen.recorded {
            self.unless(now > until, Promise::OneAnswer);
            self.begin_anew();
            self.passes(Landmark::Expired);
        }
        let believed = self
            .seen
            .grants
            .iter()
            .any(|(other, grant)| *other != claim && grant.lease_end + GRACE >= now);
        self.unless(!believed, Promise::NoOverlap);
        let fence = won.fence;
        self.unless(fence > self.seen.last_fence, Promise::FencesGrow);
        let repeats = policy == Policy::Refuse && self.seen.effects_of_holders > 0;
        self.unless(!repeats, Promise::RefuseNeverRepeats);
        let early = policy == Policy::Recover && now < self.seen.not_before;
        self.unless(!early, Promise::ProbesBackOff);
        if won.doubt {
            self.passes(Landmark::TakenOver);
        } else if !self.may_run(claim) {
            self.passes(Landmark::LandedLate);
        }
        let again = self.seen.last_winner == Some(claim);
        self.unless(!again, Promise::WinsOnce);
        self.seen.last_fence = fence;
        self.seen.last_winner = Some(claim);
        self.seen.not_before = 0;
        self.extend(claim);
    }

    /// The recorded answer is over: the key is as good as new.
    fn begin_anew(&mut self) {
        let seen = &mut self.seen;
        seen.recorded = None;
        seen.effect = None;
        seen.effects = 0;
        seen.effects_of_holders = 0;
        seen.taken_over = 0;
        for grant in seen.grants.values_mut() {
            grant.old = true;
        }
    }

    /// The store has promised the key for a lease from now.
    pub(crate) fn extend(&mut self, claim: Number) {
        let lease_end = self.now + LEASE;
        let grant = self.seen.grants.entry(claim).or_insert(Grant {
            lease_end,
            old: false,
        });
        grant.lease_end = lease_end.max(grant.lease_end);
    }

    pub(crate) fn judge_begun(&mut self, claim: Number, doubt: bool) {
        let granted = self.seen.grants.get(&claim).copied();
        self.unless(granted.is_some(), Promise::FailClosed);
        if doubt && granted.is_some_and(|grant| !grant.old) {
            self.seen.taken_over += 1;
            let bounded = self.seen.taken_over <= MAX_TAKEOVERS;
            self.unless(bounded, Promise::TakeoversBounded);
        }
    }

    pub(crate) fn judge_effect(&mut self, claim: Number) {
        let Some(grant) = self.seen.grants.get(&claim).copied() else {
            return self.breaks(Promise::FailClosed);
        };
        if grant.old {
            return;
        }
        self.seen.effect = Some(claim);
        self.seen.effects += 1;
        if self.seen.last_winner == Some(claim) {
            self.seen.effects_of_holders += 1;
        }
        let policies: Vec<_> = self.callers.iter().map(|caller| caller.takeover).collect();
        if policies.iter().all(|policy| *policy == Policy::Refuse) {
            self.unless(self.seen.effects <= 1, Promise::OneEffect);
        }
        if policies.iter().all(|policy| *policy != Policy::Rerun) {
            self.unless(
                self.seen.effects_of_holders <= 1,
                Promise::OneEffectOfHolders,
            );
        }
    }

    pub(crate) fn judge_completed(
        &mut self,
        claim: Number,
        fence: i64,
        value: Number,
        before: Option<State>,
        written: idem::store::Written,
    ) {
        let (now, last) = (self.now, self.seen.last_winner == Some(claim));
        match written {
            idem::store::Written::Done => {
                self.unless(last, Promise::HoldersWrite);
                let open = self.seen.recorded.is_none_or(|(_, until)| now > until);
                self.unless(open, Promise::OneAnswer);
                self.unless(fence > self.seen.completed_fence, Promise::FencesGrow);
                self.seen.completed_fence = fence;
                self.seen.recorded = Some((value, now + TTL));
                if before == Some(State::Unknown) {
                    self.passes(Landmark::LateTruth);
                }
            }
            idem::store::Written::AlreadyDone => {
                let own = self.seen.recorded.is_some_and(|(of, _)| of == value);
                self.unless(own, Promise::SameAnswer);
            }
            _ => {
                let last = fence == self.seen.last_fence;
                let taken = !last || before.is_none() || self.seen.recorded.is_some();
                self.unless(taken, Promise::TruthIsTaken);
                self.passes(Landmark::Superseded);
            }
        }
    }

    /// What a write that is no reservation may have made of the row.
    pub(crate) fn judge_ended(&mut self, claim: Number, before: Option<State>, retry: Option<i64>) {
        let after = self.row.0.as_ref().map(|record| record.state);
        if after == before {
            return;
        }
        let last = self.seen.last_winner == Some(claim);
        self.unless(last, Promise::HoldersWrite);
        if after == Some(State::Released) {
            let happened = self.seen.effects_of_holders > 0 && self.seen.recorded.is_none();
            self.unless(!happened, Promise::DoubtStays);
            self.seen.taken_over = 0;
        }
        if after == Some(State::Unknown)
            && let Some(retry) = retry
        {
            self.seen.not_before = self.now + retry;
        }
    }

    pub(crate) fn judge_swept(&mut self, before: &Record) {
        let open = matches!(before.state, State::InProgress | State::Unknown);
        let kept = self
            .seen
            .recorded
            .is_some_and(|(_, until)| self.now <= until);
        self.unless(!open && !kept, Promise::SweepOnlyOver);
        self.begin_anew();
        self.seen.last_winner = None;
        self.passes(Landmark::Swept);
    }

    /// Forgets the promises to claims whose body will never run.
    pub(crate) fn forget_the_gone(&mut self) {
        let claims: Vec<_> = self.seen.grants.keys().copied().collect();
        for claim in claims {
            if !self.may_run(claim) {
                self.seen.grants.remove(&claim);
            }
        }
    }
}
