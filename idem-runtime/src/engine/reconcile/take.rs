//! Taking a record over before the outside world is asked about it.

use std::any::TypeId;

use super::Inner;
use crate::clock::micros;
use crate::codec::{Codec, Json};
use crate::engine::attempt::Attempt;
use crate::engine::call::Prepared;
use crate::engine::enter::ask;
use crate::error::{Error, StoreError};
use crate::policy::{OnInProgress, OnStale, OnUnknown};
use crate::record::{Claim, Record, State, UnknownReason};
use crate::singleflight::FlightKey;
use crate::store::{Holder, MarkUnknown, Reserve, Reserved, Takeover};
use crate::sync::Arc;
use crate::telemetry::{self, StoreStep};

/// Whether it is worth asking the store for this record; it decides again.
pub(super) fn may_take(engine: &Inner, record: &Record, now_us: i64) -> bool {
    record.takeovers < engine.limits.max_takeovers
        && record.not_before_us.is_none_or(|at| at <= now_us)
}

/// Since when a record is in doubt: a lapsed one since its lease was over.
pub(super) fn since_us(record: &Record) -> i64 {
    let since_us = record.since_us.or(record.lease_until_us);
    since_us.unwrap_or(record.started_us)
}

/// Takes a record over, as a caller under `recover` does; none if somebody was
/// faster, or it need not be asked about any more.
pub(super) async fn take(
    engine: &Arc<Inner>,
    record: Record,
    released_us: Option<i64>,
) -> Result<Option<Attempt>, Error> {
    let inner = Arc::clone(engine);
    // If the pass is gone when it is won, nobody takes it up, and dropping it
    // gives it back.
    let taken = engine.detached(async move { take_over(&inner, record, released_us).await });
    Ok(taken.await??)
}

async fn take_over(
    engine: &Arc<Inner>,
    record: Record,
    released_us: Option<i64>,
) -> Result<Option<Attempt>, StoreError> {
    if !is_as_seen(engine, &record).await? {
        return Ok(None);
    }
    if is_left_behind(&record) && !mark(engine, &record).await? {
        return Ok(None);
    }
    let prepared = Arc::new(prepare(engine, record, released_us));
    let (reserved, sent_us, claim) = ask(engine, &prepared, Takeover::Recover).await?;
    let Reserved::Won(won) = reserved else {
        return Ok(None);
    };
    let holder = Holder {
        id: prepared.id(),
        claim,
        fence: won.fence,
    };
    let doubt = won.doubt;
    telemetry::won(prepared.operation.clone(), prepared.id(), &won);
    let attempt = Attempt::start(engine, &prepared, holder, won, sent_us, None);
    // Released or forgotten at this very moment it is the next caller's, who has a
    // body; and after a reply that took longer than the lease it is anybody's.
    if !doubt || !attempt.is_current().await || engine.is_closing() {
        return Ok(None);
    }
    Ok(Some(attempt))
}

/// Whether nobody has changed it since its page was read, which may be many
/// probes ago. A reservation would also win what was released meanwhile, and
/// until that is given back a caller with another payload would be refused.
async fn is_as_seen(engine: &Inner, record: &Record) -> Result<bool, StoreError> {
    let Some(admin) = engine.store.admin() else {
        return Ok(false);
    };
    let limit = engine.limits.store_timeout;
    let looked = engine.store_call(StoreStep::Look, limit, admin.get(&record.id));
    let seen = looked.await?;
    Ok(seen
        .is_some_and(|seen| (seen.record.fence, seen.record.state) == (record.fence, record.state)))
}

/// Whether a transaction left it behind, so that nobody can take it over.
fn is_left_behind(record: &Record) -> bool {
    record.state == State::InProgress && record.lease_until_us.is_none()
}

/// Says what its row means, in the name of the attempt that cannot: it is
/// unknown, and can be taken over like others.
async fn mark(engine: &Inner, record: &Record) -> Result<bool, StoreError> {
    let request = MarkUnknown {
        holder: Holder {
            id: record.id,
            claim: record.claim,
            fence: record.fence,
        },
        reason: UnknownReason::Unfinished,
        undecided_retry_us: None,
    };
    let limit = engine.limits.store_timeout;
    let marked = engine.store.mark_unknown(&request);
    Ok(engine
        .store_call(StoreStep::Unknown, limit, marked)
        .await?
        .is_done())
}

/// The call that a record tells of itself: nobody has its arguments any more, but
/// a reservation needs only their digests.
fn prepare(engine: &Inner, record: Record, released_us: Option<i64>) -> Prepared {
    Prepared {
        operation: record.operation.clone().into(),
        flight: FlightKey {
            id: record.id,
            fingerprint: record.fingerprint,
            version: record.version_running.clone(),
            codec: <Json as Codec<(), ()>>::ID,
            output: TypeId::of::<()>(),
        },
        reserve: Reserve {
            id: record.id,
            operation: record.operation,
            label: record.label,
            scope: record.scope,
            fingerprint: record.fingerprint,
            elements: record.elements,
            // Each question to the store draws its own.
            claim: Claim::from_bytes([0; 16]),
            lease_us: micros(engine.limits.lease),
            grace_us: micros(engine.limits.grace),
            takeover: Takeover::Recover,
            max_takeovers: engine.limits.max_takeovers,
            version: record.version_running,
        },
        on_in_progress: OnInProgress::Reject,
        on_unknown: OnUnknown::Recover,
        on_stale: OnStale::Error,
        ttl_us: released_us,
        max_run: engine.limits.max_run,
    }
}
