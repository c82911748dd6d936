//! Every name of a span, event, metric and label, in one place.
//!
//! Metrics go through the `metrics` facade (feature `metrics`), events through
//! `tracing`. Neither ever holds a key, a label, an argument or a stored value:
//! records appear by the first digits of their id.

use std::time::Duration;

use crate::engine::Limits;
use crate::engine::attempt::AttemptState;
use crate::engine::conclude::End;
use crate::error::{Error, StoreError};
use crate::identity::RecordId;
use crate::outcome::How;
use crate::record::UnknownReason;
use crate::store::{Finding, Meta, Store, Won};
use crate::sync::Arc;

/// The target of every event.
pub const TARGET: &str = "idem";

/// The names of metrics.
pub mod names {
    /// Counter by `operation` and `outcome`: calls that got an answer.
    pub const CALLS: &str = "idem_calls_total";
    /// Counter by `reason`: calls that the engine refused.
    pub const REFUSALS: &str = "idem_refusals_total";
    /// Counter by `operation`: reservations that were won.
    pub const RESERVATIONS: &str = "idem_reservations_total";
    /// Counter by `operation`: lapsed or unknown attempts that were taken over.
    pub const TAKEOVERS: &str = "idem_takeovers_total";
    /// Counter by `operation`: answers that could not be kept.
    pub const TOMBSTONES: &str = "idem_tombstones_total";
    /// Counter by `operation`: outcomes that became unknown.
    pub const UNKNOWN: &str = "idem_unknown_total";
    /// Counter by `operation`: attempts that ended after another took over.
    pub const SUPERSEDED: &str = "idem_superseded_total";
    /// Counter by `operation`: leases that were lost while the body ran.
    pub const LEASES_LOST: &str = "idem_leases_lost_total";
    /// Counter: renewals that the store did not answer.
    pub const RENEWAL_FAILURES: &str = "idem_renewal_failures_total";
    /// Counter by `operation`: ends of attempts told in the background.
    pub const BACKGROUND: &str = "idem_background_completes_total";
    /// Counter: rows that sweep deleted.
    pub const SWEPT: &str = "idem_swept_total";
    /// Counter by `step` and `kind`: store calls that failed.
    pub const STORE_ERRORS: &str = "idem_store_errors_total";
    /// Histogram by `step`: seconds of a store call.
    pub const STORE_SECONDS: &str = "idem_store_seconds";
}

macro_rules! count {
    ($name:expr $(, $label:literal => $value:expr)* $(; by $by:expr)?) => {
        #[cfg(feature = "metrics")]
        {
            #[allow(unused_mut, unused_assignments, reason = "`by` is optional")]
            let mut by = 1;
            $(by = $by;)?
            metrics::counter!($name $(, $label => $value)*).increment(by);
        }
    };
}

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

pub(crate) fn won(operation: &Arc<str>, record: RecordId, won: &Won) {
    count!(names::RESERVATIONS, "operation" => operation.to_string());
    if won.doubt {
        count!(names::TAKEOVERS, "operation" => operation.to_string());
        tracing::warn!(target: TARGET, operation = &**operation,
            %record,
            attempt = won.attempt,
            "took over an attempt that ended without an answer"
        );
    }
}

pub(crate) fn call(operation: &Arc<str>, how: How) {
    count!(names::CALLS, "operation" => operation.to_string(), "outcome" => how.name());
    tracing::debug!(target: TARGET, operation = &**operation, outcome = how.name(), "answered");
}

pub(crate) fn unprotected(operation: &str) {
    count!(names::CALLS, "operation" => operation.to_owned(), "outcome" => How::Unprotected.name());
    tracing::debug!(target: TARGET, operation, outcome = How::Unprotected.name(), "no key");
}

pub(crate) fn refused(error: &Error) {
    let reason = match error {
        Error::InProgress { .. } => "in_progress",
        Error::PayloadMismatch { .. } => "payload_mismatch",
        Error::UnknownOutcome { .. } => "unknown_outcome",
        Error::Superseded => "superseded",
        Error::Stale { .. } => "stale",
        Error::NotReplayable { .. } => "not_replayable",
        Error::InvalidKey { .. } => "invalid_key",
        Error::Fingerprint { .. } => "fingerprint",
        Error::Failed { .. } => "failed",
        Error::Reentrant => "reentrant",
        Error::NoEngine => "no_engine",
        Error::NoContext => "no_context",
        Error::Misuse { .. } => "misuse",
        Error::ShuttingDown => "shutting_down",
        Error::NotRecorded(_) => "not_recorded",
        Error::Store(_) => "store",
        Error::Step { .. } => "step",
    };
    count!(names::REFUSALS, "reason" => reason);
    tracing::debug!(target: TARGET, reason, "refused");
}

/// A client is told no more than that the server is not set up right.
#[cfg(feature = "http")]
pub(crate) fn internal(error: &Error) {
    tracing::error!(target: TARGET, %error, "a request was refused");
}

pub(crate) fn damaged(operation: &Arc<str>) {
    tracing::error!(target: TARGET, operation = &**operation,
        "a recorded answer is damaged: its bytes are not those that were stored"
    );
}

pub(crate) fn ended(state: &AttemptState, end: &End) {
    let operation = &state.prepared.operation;
    match end {
        End::Complete(complete) => {
            if let crate::store::Ending::Tombstone(reason) = &complete.ending {
                count!(names::TOMBSTONES, "operation" => operation.to_string());
                tracing::warn!(target: TARGET, operation = &**operation,
                    record = %state.holder.id,
                    "the answer cannot be replayed: {reason}"
                );
            }
        }
        End::Release(_) => {}
        End::Unknown(request) => unknown(state, request.reason),
    }
}

pub(crate) fn unknown(state: &AttemptState, reason: UnknownReason) {
    let operation = &state.prepared.operation;
    count!(names::UNKNOWN, "operation" => operation.to_string());
    tracing::warn!(target: TARGET, operation = &**operation,
        record = %state.holder.id,
        attempt = state.won.attempt,
        "the outcome is unknown: {reason}"
    );
}

pub(crate) fn superseded(state: &AttemptState, step: &'static str) {
    count!(names::SUPERSEDED, "operation" => state.prepared.operation.to_string());
    tracing::error!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        fence = state.won.fence,
        step,
        "an attempt ended after another one took over: its body ran, and its answer was not recorded"
    );
}

pub(crate) fn lease_lost(state: &AttemptState) {
    count!(names::LEASES_LOST, "operation" => state.prepared.operation.to_string());
    tracing::warn!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        "an attempt lost its lease while its body runs"
    );
}

pub(crate) fn max_run_over(state: &AttemptState) {
    tracing::warn!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        max_run = ?state.prepared.max_run,
        "an attempt runs longer than `max_run`: its lease is no longer renewed, and its record lapses to unknown"
    );
}

pub(crate) fn renewal_failed(leases: usize, error: &StoreError) {
    count!(names::RENEWAL_FAILURES);
    tracing::warn!(target: TARGET, leases, %error, "leases could not be renewed; trying again");
}

pub(crate) fn background(state: &AttemptState, step: &'static str) {
    count!(names::BACKGROUND, "operation" => state.prepared.operation.to_string());
    tracing::warn!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        step,
        "the store does not confirm how an attempt ended; trying again in the background"
    );
}

pub(crate) fn not_recorded(state: &AttemptState, step: &'static str, error: &StoreError) {
    tracing::error!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        step,
        %error,
        "the store refused to record how an attempt ended; the record lapses to unknown"
    );
}

pub(crate) fn store_call<T>(step: &'static str, took: Duration, answer: &Result<T, StoreError>) {
    #[cfg(feature = "metrics")]
    metrics::histogram!(names::STORE_SECONDS, "step" => step).record(took);
    if let Err(error) = answer {
        let kind = match error.kind() {
            crate::error::StoreErrorKind::Transient => "transient",
            crate::error::StoreErrorKind::Permanent => "permanent",
            crate::error::StoreErrorKind::Misconfigured => "misconfigured",
        };
        count!(names::STORE_ERRORS, "step" => step, "kind" => kind);
        tracing::debug!(target: TARGET, step, kind, ?took, "store call failed");
    }
}

pub(crate) fn swept(rows: u64) {
    count!(names::SWEPT; by rows);
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

pub(crate) fn reconciled(state: &AttemptState, ended: &'static str) {
    tracing::info!(target: TARGET, operation = &*state.prepared.operation,
        record = %state.holder.id,
        attempt = state.won.attempt,
        ended,
        "asked about an attempt that ended without an answer"
    );
}
