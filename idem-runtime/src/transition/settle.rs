//! What an operator may make of a record.

use super::{Decision, ended, expiry, released};
use crate::record::{Record, Recorded, State};
use crate::store::{Settle, Written};

/// How an operator settles a record.
#[derive(Debug, Clone)]
pub enum Settlement {
    /// The effect happened, and this is its answer.
    Done(Recorded),
    /// Nothing happened: the next caller runs.
    NotDone,
    /// It is as if the key had never been used: the next caller runs. Also of
    /// an answer that is recorded.
    Forgotten,
}

impl Settlement {
    /// Returns the number kept in the audit.
    #[must_use]
    pub const fn code(&self) -> i16 {
        match self {
            Self::Done(_) => 1,
            Self::NotDone => 2,
            Self::Forgotten => 3,
        }
    }
}

/// Decides an operator's settling of a lapsed, unknown or tombstone record, or
/// the forgetting of any, as it was seen with a fence. An attempt that holds
/// its lease is settled only by force.
#[must_use]
pub fn settle(current: Option<&Record>, request: &Settle, now_us: i64) -> Decision<Written> {
    let Some(record) = current else {
        return Decision::reply(Written::Gone);
    };
    let open = match record.state {
        State::Unknown | State::Tombstone => true,
        // One without a lease was never meant to be seen: it is in doubt.
        State::InProgress => {
            request.force
                || record.lease_until_us.is_none()
                || record.is_lapsed(now_us, request.grace_us)
        }
        State::Completed | State::Released => {
            matches!(request.settlement, Settlement::Forgotten)
        }
    };
    let is_as_seen =
        record.fence == request.fence && request.state.is_none_or(|state| state == record.state);
    if !is_as_seen || !open {
        return Decision::reply(Written::Superseded);
    }
    let mut next = match &request.settlement {
        Settlement::Done(answer) => resolved(record, answer, request.ttl_us, now_us),
        Settlement::NotDone => {
            let mut next = released(record, request.ttl_us, now_us);
            if record.state == State::Tombstone {
                next.version_recorded.clone_from(&record.version_applied);
            }
            next
        }
        Settlement::Forgotten => forgotten(record, now_us),
    };
    // A holder that wakes after this must not overwrite the decision.
    next.fence = record.fence.saturating_add(1).max(now_us);
    Decision::write(Written::Done, next)
}

fn resolved(record: &Record, answer: &Recorded, ttl_us: Option<i64>, now_us: i64) -> Record {
    let mut next = ended(record, now_us);
    next.state = State::Completed;
    next.expires_us = expiry(now_us, ttl_us);
    next.reason = None;
    next.doubt = false;
    next.since_us = None;
    // A tombstone has recorded its version already.
    if record.version_running.is_some() {
        next.version_recorded.clone_from(&record.version_running);
    }
    next.recorded_fingerprint = None;
    if !answer.failed && next.version_applied < next.version_recorded {
        next.version_applied.clone_from(&next.version_recorded);
    }
    next.answer = Some(answer.clone());
    next
}

/// A row that has expired and tells nothing: it keeps the fence until a sweep
/// deletes it.
fn forgotten(record: &Record, now_us: i64) -> Record {
    Record {
        label: None,
        elements: Vec::new(),
        answer: None,
        version_applied: None,
        version_recorded: None,
        recorded_fingerprint: None,
        expires_us: Some(now_us.saturating_sub(1)),
        ..released(record, None, now_us)
    }
}
