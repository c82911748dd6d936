//! What happened: events at the level that they deserve, and counters.

use std::borrow::Cow;
use std::time::Duration;

#[cfg(feature = "metrics")]
use super::names;
use super::{StoreStep, TARGET, count};
use crate::engine::Limits;
use crate::engine::attempt::AttemptState;
use crate::engine::conclude::End;
#[cfg(feature = "http")]
use crate::error::Error;
use crate::error::StoreError;
use crate::identity::RecordId;
use crate::record::UnknownReason;
use crate::store::{Ending, Finding, Meta, Store, Won};
use crate::sync::Arc;

/// One line says what this engine promises.
pub(crate) fn started(
    store: &Arc<dyn Store>,
    namespace: &str,
    limits: &Limits,
    findings: &[Finding],
    meta: &Meta,
) {
    let void: Vec<_> = findings
        .iter()
        .filter(|finding| finding.voids_at_most_once())
        .collect();
    let promise = if void.is_empty() {
        "until its TTL ends, on a store that keeps what it acknowledged: one recorded answer per key, and at most one run of the body, unless you chose `rerun`, `recover` or `release` for that case"
    } else {
        "NO promise of at most one run: a loss was accepted by name"
    };
    tracing::info!(target: TARGET, store = store.kind(),
        namespace,
        format = meta.format,
        lease = ?limits.lease,
        grace = ?limits.grace,
        "started: {promise}"
    );
    for finding in findings {
        tracing::warn!(target: TARGET, store = store.kind(), "{finding}");
    }
}

pub(crate) fn won(operation: Cow<'static, str>, record: RecordId, won: &Won) {
    if won.doubt {
        count!(TAKEOVERS, "operation" => operation.clone());
        tracing::warn!(target: TARGET, operation = &*operation,
            %record,
            attempt = won.attempt,
            "took over an attempt that ended without an answer"
        );
    }
    count!(RESERVATIONS, "operation" => operation);
}

/// A call of this operation waited.
pub(crate) fn waited(operation: Cow<'static, str>, time: Duration) {
    tracing::debug!(target: TARGET, operation = &*operation, ?time, "waited for another attempt");
    #[cfg(feature = "metrics")]
    metrics::histogram!(names::WAIT_SECONDS, "operation" => operation).record(time);
}

/// A request without a key is no call, but counts as one.
#[cfg(feature = "http")]
pub(crate) fn unprotected(operation: Cow<'static, str>) {
    super::Watch::begin(operation).unprotected();
}

/// A client is told no more than that the server is not set up right.
#[cfg(feature = "http")]
pub(crate) fn internal(error: &Error) {
    tracing::error!(target: TARGET, %error, "a request was refused");
}

pub(crate) fn damaged(operation: &str) {
    tracing::error!(target: TARGET, operation,
        "a recorded answer is damaged: its bytes are not those that were stored"
    );
}

/// An attempt ended, and the store has it.
pub(crate) fn ended(state: &AttemptState, end: &End) {
    let operation = &*state.prepared.operation;
    match end {
        End::Complete(complete) => match &complete.ending {
            Ending::Answer(_) => attempt(state, "completed"),
            Ending::Tombstone(reason) => {
                attempt(state, "tombstone");
                tracing::warn!(target: TARGET, operation,
                    record = %state.holder.id,
                    "the answer cannot be replayed: {reason}"
                );
            }
        },
        // Nothing is released that may hide what an earlier attempt did.
        End::Release(request) if state.won.doubt && !request.probed => {
            attempt(state, "unknown");
        }
        End::Release(_) => attempt(state, "released"),
        End::Unknown(request) => unknown(state, request.reason),
    }
}

/// Counts how an attempt ended.
fn attempt(state: &AttemptState, end: &'static str) {
    count!(ATTEMPTS, "operation" => state.prepared.operation.clone(), "end" => end);
    tracing::debug!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        attempt = state.won.attempt,
        end,
        "an attempt ended"
    );
}

pub(crate) fn unknown(state: &AttemptState, reason: UnknownReason) {
    // A farewell and the attempt's own end may both say so.
    if !state.is_first_unknown() {
        return;
    }
    attempt(
        state,
        if reason == UnknownReason::Undecided {
            "undecided"
        } else {
            "unknown"
        },
    );
    tracing::warn!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        attempt = state.won.attempt,
        "the outcome is unknown: {reason}"
    );
}

/// A reservation whose body was not polled is given back.
pub(crate) fn given_back(state: &AttemptState) {
    attempt(state, "given_back");
}

/// An attempt ended after another one took over.
pub(crate) fn superseded(state: &AttemptState, step: &'static str) {
    attempt(state, "superseded");
    not_held(state, step);
}

/// What an attempt wanted to write is another one's.
pub(crate) fn not_held(state: &AttemptState, step: &'static str) {
    tracing::error!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        fence = state.won.fence,
        step,
        "another attempt had taken over: its body ran, and what it gave was not recorded"
    );
}

pub(crate) fn lease_lost(state: &AttemptState) {
    count!(LEASES_LOST, "operation" => state.prepared.operation.clone());
    tracing::warn!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        "an attempt lost its lease while its body runs"
    );
}

pub(crate) fn max_run_over(state: &AttemptState) {
    count!(OVERDUE, "operation" => state.prepared.operation.clone());
    tracing::warn!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        max_run = ?state.prepared.max_run,
        "an attempt runs longer than `max_run`: its lease is no longer renewed, and its record lapses to unknown"
    );
}

pub(crate) fn renewal_failed(leases: usize, error: &StoreError) {
    count!(RENEWAL_FAILURES);
    tracing::warn!(target: TARGET, leases, %error, "leases could not be renewed; trying again");
}

/// A renewal was sent this much later than it was planned.
pub(crate) fn renewal_lag(late: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!(names::RENEWAL_LAG).record(late);
    #[cfg(not(feature = "metrics"))]
    let _ = late;
}

pub(crate) fn background(state: &AttemptState, step: &'static str) {
    count!(BACKGROUND, "operation" => state.prepared.operation.clone());
    tracing::warn!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        step,
        "the store does not confirm how an attempt ended; trying again in the background"
    );
}

/// The store refused for good to take how an attempt ended.
pub(crate) fn never_told(state: &AttemptState, step: &'static str, error: &StoreError) {
    attempt(state, "not_recorded");
    not_recorded(state, step, error);
}

pub(crate) fn not_recorded(state: &AttemptState, step: &'static str, error: &StoreError) {
    tracing::error!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        step,
        %error,
        "the store refused to record how an attempt ended; the record lapses to unknown"
    );
}

pub(crate) fn store_call<T>(step: StoreStep, took: Duration, answer: &Result<T, StoreError>) {
    let step = step.name();
    #[cfg(feature = "metrics")]
    metrics::histogram!(names::STORE_SECONDS, "step" => step).record(took);
    if let Err(error) = answer {
        let kind = match error.kind() {
            crate::error::StoreErrorKind::Transient => "transient",
            crate::error::StoreErrorKind::Permanent => "permanent",
            crate::error::StoreErrorKind::Misconfigured => "misconfigured",
        };
        count!(STORE_ERRORS, "step" => step, "kind" => kind);
        tracing::debug!(target: TARGET, step, kind, ?took, "store call failed");
    }
}

pub(crate) fn swept(rows: u64) {
    count!(SWEPT; by rows);
    tracing::debug!(target: TARGET, rows, "swept");
}

pub(crate) fn drained(unknown: usize) {
    if unknown == 0 {
        tracing::info!(target: TARGET, "shut down: every attempt has ended");
    } else {
        tracing::warn!(target: TARGET, unknown,
            "shut down: attempts had not ended and are marked unknown"
        );
    }
}

/// Without an error, the store panicked.
pub(crate) fn sweep_failed(error: Option<&StoreError>) {
    let error = error.map(tracing::field::display);
    tracing::warn!(target: TARGET, error, "a sweep failed; the next one comes in its time");
}

pub(crate) fn no_sweeper() {
    tracing::error!(target: TARGET,
        "nothing is swept: there is no tokio runtime; call `sweeper` from inside one, or build the engine inside one"
    );
}

/// An attempt that only asked ended by being settled.
pub(crate) fn settled(state: &AttemptState, end: Option<&'static str>) {
    if let Some(end) = end {
        attempt(state, end);
    }
}

pub(crate) fn reconciled(state: &AttemptState, ended: &'static str) {
    tracing::info!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        attempt = state.won.attempt,
        ended,
        "asked about an attempt that ended without an answer"
    );
}
