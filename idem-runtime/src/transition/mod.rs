//! Who may change a record, and into what: the one place where it is decided.
//!
//! Pure functions from what stands in the store, a request and the store's
//! time to a reply and the record to write, if any. [`MemoryStore`] and
//! `SqliteStore` call them inside their atomic step; stores that decide in
//! their own language must give the same replies, which the conformance suite
//! checks.
//!
//! | from | to | by | guard |
//! |---|---|---|---|
//! | absent, or finished and expired | in progress | any caller | one atomic step |
//! | in progress | the same, "yours" | the same caller again | claim |
//! | anything else | the same | the same claim again, which never wins twice | claim |
//! | released | in progress | any caller | one atomic step |
//! | in progress | later lease | holder | claim, fence; also when lapsed |
//! | in progress, unknown | completed, tombstone | holder | claim, fence |
//! | in progress | released; unknown if in doubt | holder | claim, fence |
//! | in progress | unknown | holder | claim, fence |
//! | in progress; unknown without doubt | what stood there | holder whose body was never polled | claim |
//! | lapsed | unknown | any caller that refuses, or when exhausted | still lapsed |
//! | lapsed, unknown | in progress, next attempt | one caller that reruns or recovers | still so, takeovers below the limit |
//! | absent, released, finished and expired | in progress without a lease | a caller inside of its own transaction | its transaction |
//! | completed, tombstone | in progress | a caller with a newer version | version, one atomic step |
//! | lapsed, unknown, tombstone | completed, released | an operator | fence |
//! | completed, tombstone, released, expired | absent | sweep | past TTL and grace |
//! | in progress | the same, with one more step | holder | claim, fence; also when lapsed |
//!
//! Anything else changes nothing. A fence only grows, over every one of these.
//!
//! A record in progress without a lease is seen by its own transaction only. If
//! others see it, it was committed before it was completed: it counts as unknown,
//! and nobody takes it over.
//!
//! [`MemoryStore`]: crate::store::MemoryStore

mod settle;
mod steps;
mod unleased;

pub use self::settle::{Settlement, settle};
pub use self::steps::{begins_life, ends_life, holds_steps};
pub use self::unleased::reserve_in_transaction;
use crate::identity::Fingerprint;
use crate::record::{Record, State, TombstoneReason, UnknownReason};
use crate::store::{
    Complete, Ending, GiveBack, Holder, Lease, MarkUnknown, Release, Reserve, Reserved, Takeover,
    Won, Written,
};

/// A reply, and the record to write before it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<T> {
    /// What to answer.
    pub reply: T,
    /// What to write; nothing if the record stays as it is.
    pub write: Option<Record>,
}

impl<T> Decision<T> {
    fn reply(reply: T) -> Self {
        Self { reply, write: None }
    }

    fn write(reply: T, record: Record) -> Self {
        Self {
            reply,
            write: Some(record),
        }
    }
}

/// Decides a reservation.
#[must_use]
pub fn reserve(current: Option<&Record>, request: &Reserve, now_us: i64) -> Decision<Reserved> {
    let Some(record) = current else {
        return win(fresh(request, now_us), 0);
    };
    if record.claim != request.claim {
        return found(record, request, now_us);
    }
    if record.state == State::InProgress {
        return yours(record, request, now_us);
    }
    // It was under way while its attempt ended. It may learn what stands there,
    // but a claim never wins twice: nobody waits for the second time.
    let decision = found(record, request, now_us);
    if matches!(decision.reply, Reserved::Won(_)) {
        return Decision::reply(Reserved::InProgress { left_us: 0 });
    }
    decision
}

/// Tells what a reservation without a version would be told, where that is a
/// finished record and nothing else is needed to say so.
#[must_use]
pub fn at_hand(record: &Record, fingerprint: &Fingerprint, now_us: i64) -> Option<Reserved> {
    let told = matches!(record.state, State::Completed | State::Tombstone)
        && record.fingerprint == *fingerprint
        && !record.is_expired(now_us);
    told.then(|| finished(record, now_us))
}

/// Decides on a record whose running attempt, if any, is somebody else's.
fn found(record: &Record, request: &Reserve, now_us: i64) -> Decision<Reserved> {
    if let Some(decision) = ordered(record, request, now_us) {
        return decision;
    }
    if record.is_expired(now_us) {
        return win(again(record, request, now_us), 0);
    }
    if record.state == State::Released {
        let mut next = again(record, request, now_us);
        next.attempt = record.attempt.saturating_add(1);
        return win(next, 0);
    }
    if record.fingerprint != request.fingerprint && !is_newer(record, request) {
        // Decided before anything stored is looked at.
        return Decision::reply(Reserved::Mismatch {
            differs: record.differs(&request.elements),
        });
    }
    match record.state {
        State::InProgress if record.is_lapsed(now_us, request.grace_us) => {
            lapsed(record, request, now_us)
        }
        // Committed by mistake, or left behind by this transaction's own call:
        // for people, whatever the caller would do with a lapsed one.
        State::InProgress if record.lease_until_us.is_none() => {
            Decision::reply(still_unknown(record, request, None))
        }
        State::InProgress => Decision::reply(Reserved::InProgress {
            left_us: record
                .lease_until_us
                .unwrap_or(now_us)
                .saturating_add(request.grace_us)
                .saturating_sub(now_us)
                .max(0),
        }),
        State::Unknown => unknown(record, request, now_us),
        State::Completed | State::Tombstone | State::Released => {
            Decision::reply(finished(record, now_us))
        }
    }
}

/// Answers a repeated request. The body starts from this reply, so the lease
/// does too; it is never shortened.
fn yours(record: &Record, request: &Reserve, now_us: i64) -> Decision<Reserved> {
    let reply = Reserved::Won(Won {
        resent: true,
        ..won(record, doubt_for(record, now_us))
    });
    let until = now_us.saturating_add(request.lease_us);
    if record.lease_until_us.is_none_or(|lease| lease >= until) {
        return Decision::reply(reply);
    }
    let mut next = record.clone();
    next.lease_until_us = Some(until);
    Decision::write(reply, next)
}

/// The part of a reservation that only versions decide.
fn ordered(record: &Record, request: &Reserve, now_us: i64) -> Option<Decision<Reserved>> {
    let version = request.version.as_ref()?;
    let recorded = record.version_recorded.as_ref()?;
    if version < recorded {
        return Some(Decision::reply(Reserved::Stale {
            recorded: recorded.clone(),
            applied: record.version_applied.clone(),
            newest: Box::new(finished(record, now_us)),
        }));
    }
    if version == recorded {
        let fingerprint = record.recorded_fingerprint.unwrap_or(record.fingerprint);
        return Some(Decision::reply(if fingerprint == request.fingerprint {
            finished(record, now_us)
        } else {
            Reserved::Mismatch {
                differs: record.differs(&request.elements),
            }
        }));
    }
    // A newer one: an idle record runs it, whatever became of the last answer.
    matches!(record.state, State::Completed | State::Tombstone)
        .then(|| win(again(record, request, now_us), 0))
}

fn is_newer(record: &Record, request: &Reserve) -> bool {
    request.version.is_some() && request.version != record.version_running
}

fn finished(record: &Record, now_us: i64) -> Reserved {
    match (&record.answer, record.state) {
        (Some(answer), state) if state != State::Tombstone => Reserved::Completed {
            answer: answer.clone(),
            finished_us: record.finished_us.unwrap_or(record.started_us),
            attempt: record.attempt,
            left_us: record.expires_us.map(|at| at.saturating_sub(now_us)),
        },
        _ => Reserved::Tombstone {
            reason: record
                .reason
                .and_then(TombstoneReason::from_code)
                .unwrap_or(TombstoneReason::Damaged),
        },
    }
}

fn lapsed(record: &Record, request: &Reserve, now_us: i64) -> Decision<Reserved> {
    if request.takeover != Takeover::Refuse && record.takeovers < request.max_takeovers {
        return take_over(record, request, now_us);
    }
    let mut next = record.clone();
    next.state = State::Unknown;
    next.reason = Some(UnknownReason::Lapsed.code());
    next.since_us = Some(record.since_us.unwrap_or(now_us));
    next.finished_us = Some(now_us);
    next.not_before_us = None;
    let reply = still_unknown(&next, request, None);
    Decision::write(reply, next)
}

fn unknown(record: &Record, request: &Reserve, now_us: i64) -> Decision<Reserved> {
    let allowed = record.takeovers < request.max_takeovers;
    match request.takeover {
        Takeover::Rerun if allowed => take_over(record, request, now_us),
        Takeover::Recover if allowed => match record.not_before_us {
            Some(at) if at > now_us => {
                Decision::reply(still_unknown(record, request, Some(at - now_us)))
            }
            _ => take_over(record, request, now_us),
        },
        _ => Decision::reply(still_unknown(record, request, None)),
    }
}

fn still_unknown(record: &Record, request: &Reserve, retry_us: Option<i64>) -> Reserved {
    Reserved::Unknown {
        reason: why_unknown(record),
        exhausted: request.takeover != Takeover::Refuse
            && record.takeovers >= request.max_takeovers,
        retry_us,
    }
}

/// How the attempt ended whose outcome is not known.
fn why_unknown(record: &Record) -> UnknownReason {
    let noted = record.reason.filter(|_| record.state == State::Unknown);
    match noted.and_then(UnknownReason::from_code) {
        Some(reason) => reason,
        None if record.state == State::InProgress && record.lease_until_us.is_none() => {
            UnknownReason::Unfinished
        }
        None => UnknownReason::Lapsed,
    }
}

fn take_over(record: &Record, request: &Reserve, now_us: i64) -> Decision<Reserved> {
    let mut next = again(record, request, now_us);
    next.attempt = record.attempt.saturating_add(1);
    // Counted now, and given back if the body is never polled.
    next.takeovers = record.takeovers.saturating_add(1);
    next.doubt = true;
    next.since_us = Some(record.since_us.unwrap_or(now_us));
    next.reason = Some(why_unknown(record).code());
    let doubt_for = doubt_for(&next, now_us);
    win(next, doubt_for)
}

fn doubt_for(record: &Record, now_us: i64) -> i64 {
    record
        .since_us
        .map_or(0, |since| now_us.saturating_sub(since).max(0))
}

fn fresh(request: &Reserve, now_us: i64) -> Record {
    Record {
        id: request.id,
        operation: request.operation.clone(),
        label: request.label.clone(),
        scope: request.scope,
        fingerprint: request.fingerprint,
        elements: request.elements.clone(),
        state: State::InProgress,
        fence: now_us,
        attempt: 1,
        claim: request.claim,
        takeovers: 0,
        doubt: false,
        lease_until_us: Some(now_us.saturating_add(request.lease_us)),
        started_us: now_us,
        finished_us: None,
        expires_us: None,
        since_us: None,
        not_before_us: None,
        reason: None,
        answer: None,
        version_applied: None,
        version_recorded: None,
        version_running: request.version.clone(),
        recorded_fingerprint: None,
        parent: None,
    }
}

/// A fresh attempt on an old row: the fence goes on, and so does the recorded
/// version with its answer, which makes late ones stale whatever becomes of
/// this attempt.
fn again(record: &Record, request: &Reserve, now_us: i64) -> Record {
    let ordered = record.version_recorded.is_some();
    Record {
        fence: record.fence.saturating_add(1).max(now_us),
        answer: record.answer.clone().filter(|_| ordered),
        finished_us: record.finished_us.filter(|_| ordered),
        version_applied: record.version_applied.clone(),
        version_recorded: record.version_recorded.clone(),
        recorded_fingerprint: ordered
            .then(|| record.recorded_fingerprint.unwrap_or(record.fingerprint)),
        parent: record.parent,
        ..fresh(request, now_us)
    }
}

fn won(record: &Record, doubt_for_us: i64) -> Won {
    Won {
        fence: record.fence,
        attempt: record.attempt,
        doubt: record.doubt,
        doubt_for_us,
        resent: false,
    }
}

fn win(record: Record, doubt_for_us: i64) -> Decision<Reserved> {
    Decision::write(Reserved::Won(won(&record, doubt_for_us)), record)
}

/// Returns the record if this holder may still write to it in one of `states`.
fn held<'a>(
    current: Option<&'a Record>,
    holder: &Holder,
    states: &[State],
) -> Result<&'a Record, Written> {
    let record = current.ok_or(Written::Gone)?;
    if record.claim != holder.claim || record.fence != holder.fence {
        return Err(Written::Superseded);
    }
    if states.contains(&record.state) {
        return Ok(record);
    }
    Err(Written::Superseded)
}

/// Decides the end of an attempt whose body ran to its end.
///
/// Also from unknown: a late holder that nobody replaced delivers the truth.
#[must_use]
pub fn complete(current: Option<&Record>, request: &Complete, now_us: i64) -> Decision<Written> {
    let record = match held(
        current,
        &request.holder,
        &[
            State::InProgress,
            State::Unknown,
            State::Completed,
            State::Tombstone,
        ],
    ) {
        Ok(record) => record,
        Err(written) => return Decision::reply(written),
    };
    if matches!(record.state, State::Completed | State::Tombstone) {
        return Decision::reply(Written::AlreadyDone);
    }
    let mut next = ended(record, now_us);
    next.expires_us = expiry(now_us, request.ttl_us);
    next.doubt = false;
    next.since_us = None;
    next.version_recorded.clone_from(&record.version_running);
    next.recorded_fingerprint = None;
    match &request.ending {
        Ending::Answer(answer) => {
            next.state = State::Completed;
            next.reason = None;
            if !answer.failed && next.version_applied < next.version_recorded {
                next.version_applied.clone_from(&next.version_recorded);
            }
            next.answer = Some(answer.clone());
        }
        Ending::Tombstone(reason) => {
            next.state = State::Tombstone;
            next.reason = Some(reason.code());
            next.answer = None;
        }
    }
    Decision::write(Written::Done, next)
}

/// Decides the end of an attempt that had no effect.
#[must_use]
pub fn release(current: Option<&Record>, request: &Release, now_us: i64) -> Decision<Written> {
    let record = match held(
        current,
        &request.holder,
        &[State::InProgress, State::Released, State::Unknown],
    ) {
        Ok(record) => record,
        Err(written) => return Decision::reply(written),
    };
    let doubtful = record.doubt && !request.probed;
    match record.state {
        State::Released => return Decision::reply(Written::AlreadyDone),
        // What this request makes of a doubt, sent again.
        State::Unknown if doubtful => return Decision::reply(Written::AlreadyDone),
        State::Unknown => return Decision::reply(Written::Superseded),
        _ => {}
    }
    let next = if doubtful {
        // This attempt had no effect; the one it took over may have.
        in_doubt(record, UnknownReason::Failed, now_us)
    } else {
        released(record, request.ttl_us, now_us)
    };
    Decision::write(Written::Done, next)
}

/// Decides the end of an attempt whose effect is in doubt.
#[must_use]
pub fn mark_unknown(
    current: Option<&Record>,
    request: &MarkUnknown,
    now_us: i64,
) -> Decision<Written> {
    let record = match held(
        current,
        &request.holder,
        &[State::InProgress, State::Unknown],
    ) {
        Ok(record) => record,
        Err(written) => return Decision::reply(written),
    };
    if record.state == State::Unknown {
        return Decision::reply(Written::AlreadyDone);
    }
    let mut next = in_doubt(record, request.reason, now_us);
    if let Some(retry_us) = request.undecided_retry_us {
        next.takeovers = record.takeovers.saturating_sub(1).max(0);
        next.not_before_us = Some(now_us.saturating_add(retry_us));
    }
    Decision::write(Written::Done, next)
}

/// Decides the undoing of a reservation whose body was never polled. The
/// fence is not asked for: the reply that told it may have been lost.
#[must_use]
pub fn give_back(current: Option<&Record>, request: &GiveBack, now_us: i64) -> Decision<Written> {
    let Some(record) = current else {
        return Decision::reply(Written::Gone);
    };
    if record.claim != request.claim {
        return Decision::reply(Written::Superseded);
    }
    match record.state {
        State::InProgress => {}
        // Others saw it lapse, or a shutdown came before it began. Its holder
        // knows better: nothing was polled.
        State::Unknown if !record.doubt && is_hearsay(record) => {}
        _ => return Decision::reply(Written::AlreadyDone),
    }
    let mut next = if record.doubt {
        let reason = record
            .reason
            .and_then(UnknownReason::from_code)
            .unwrap_or(UnknownReason::Lapsed);
        in_doubt(record, reason, now_us)
    } else {
        released(record, request.ttl_us, now_us)
    };
    next.attempt = record.attempt.saturating_sub(1).max(0);
    next.takeovers = record.takeovers.saturating_sub(1).max(0);
    Decision::write(Written::Done, next)
}

/// Whether a record is unknown by what others saw, not by its body's end.
fn is_hearsay(record: &Record) -> bool {
    [UnknownReason::Lapsed, UnknownReason::ShutDown]
        .map(|reason| Some(reason.code()))
        .contains(&record.reason)
}

/// Decides a renewal: allowed also when lapsed, as long as nobody took over.
#[must_use]
pub fn renew(current: Option<&Record>, request: &Lease, now_us: i64) -> Decision<bool> {
    match held(current, &request.holder, &[State::InProgress]) {
        Ok(record) => {
            let mut next = record.clone();
            next.lease_until_us = Some(now_us.saturating_add(request.lease_us));
            Decision::write(true, next)
        }
        Err(_) => Decision::reply(false),
    }
}

pub(crate) fn expiry(now_us: i64, ttl_us: Option<i64>) -> Option<i64> {
    ttl_us.and_then(|ttl| now_us.checked_add(ttl))
}

fn ended(record: &Record, now_us: i64) -> Record {
    Record {
        lease_until_us: None,
        not_before_us: None,
        finished_us: Some(now_us),
        version_running: None,
        ..record.clone()
    }
}

fn released(record: &Record, ttl_us: Option<i64>, now_us: i64) -> Record {
    Record {
        state: State::Released,
        expires_us: expiry(now_us, ttl_us),
        takeovers: 0,
        doubt: false,
        since_us: None,
        reason: None,
        ..ended(record, now_us)
    }
}

fn in_doubt(record: &Record, reason: UnknownReason, now_us: i64) -> Record {
    Record {
        state: State::Unknown,
        reason: Some(reason.code()),
        since_us: Some(record.since_us.unwrap_or(now_us)),
        expires_us: None,
        version_running: record.version_running.clone(),
        ..ended(record, now_us)
    }
}
