//! What the outside world said, and recording it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::Inner;
use crate::backoff;
use crate::clock::micros;
use crate::codec::{Codec, Json, Kept, keep_json};
use crate::engine::attempt::Attempt;
use crate::engine::conclude::{End, Told, tell};
use crate::error::{Error, StoreErrorKind};
use crate::identity::RecordId;
use crate::policy::Ttl;
use crate::record::{Note, Recorded, TombstoneReason};
use crate::store::{Complete, Ending, Settle, StoreAdmin, Written};
use crate::sync::Arc;
use crate::telemetry::{self, StoreStep};
use crate::transition::Settlement;

/// What is to be made of the record.
pub(super) enum Verdict {
    Done(Recorded),
    /// It is done, and its answer cannot be kept.
    Tombstone(TombstoneReason),
    NotDone,
    Undecided,
}

impl Verdict {
    /// Writes down an answer that was found, as a call would.
    pub(super) fn done<T>(id: &RecordId, answer: &T, limit: usize) -> Self
    where
        T: Serialize + DeserializeOwned,
    {
        let bytes = match keep_json(&Ok::<_, ()>(answer), limit) {
            Kept::Bytes(bytes) => bytes,
            Kept::Nothing(reason) => return Self::Tombstone(reason),
        };
        if serde_json::from_slice::<Result<T, ()>>(&bytes).is_err() {
            return Self::Tombstone(TombstoneReason::NotDecodable);
        }
        Self::Done(Recorded::new(id, <Json as Codec<(), ()>>::ID, false, bytes))
    }
}

/// How long what is settled is kept, and what the audit says.
pub(super) struct Terms {
    done_us: Option<i64>,
    pub(super) released_us: Option<i64>,
    found: Note,
    not_found: Note,
}

impl Terms {
    /// None if nobody is named.
    pub(super) fn new(by: &str, ttl: Option<Ttl>) -> Option<Self> {
        const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);
        Some(Self {
            done_us: ttl.unwrap_or(Ttl::Forever).micros(),
            released_us: ttl.unwrap_or(Ttl::For(DAY)).micros(),
            found: Note::new(by, "the probe found the answer")?,
            not_found: Note::new(by, "the probe found that nothing had happened")?,
        })
    }
}

/// How an attempt to settle a record ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Done,
    NotDone,
    Unknown,
    /// Others have taken or settled it.
    Superseded,
}

/// Records what was said, out of reach of the pass's cancellation.
pub(super) async fn settle(
    attempt: Attempt,
    verdict: Verdict,
    terms: &Terms,
) -> Result<Ended, Error> {
    let engine = Arc::clone(&attempt.engine);
    let state = Arc::clone(&attempt.state);
    let told = |told, ended| match told {
        Told::Superseded => Ended::Superseded,
        Told::Yes | Told::Unconfirmed => ended,
    };
    let ended = match verdict {
        Verdict::Undecided => {
            let end = End::Unknown(state.mark_undecided());
            let (answer, _) = engine.detached(tell(attempt, end)).await?;
            told(answer, Ended::Unknown)
        }
        Verdict::Tombstone(reason) => {
            let end = End::Complete(Complete {
                holder: state.holder,
                ending: Ending::Tombstone(reason),
                ttl_us: terms.done_us,
            });
            let (answer, _) = engine.detached(tell(attempt, end)).await?;
            told(answer, Ended::Done)
        }
        Verdict::Done(answer) => {
            let (done, note) = (Settlement::Done(answer), terms.found.clone());
            let settled = audited(attempt, done, terms.done_us, note);
            let ended = engine.detached(settled).await?.unwrap_or(Ended::Done);
            telemetry::settled(&state, ended.end());
            ended
        }
        Verdict::NotDone => {
            let note = terms.not_found.clone();
            let settled = audited(attempt, Settlement::NotDone, terms.released_us, note);
            let ended = engine.detached(settled).await?.unwrap_or(Ended::NotDone);
            telemetry::settled(&state, ended.end());
            ended
        }
    };
    telemetry::reconciled(&state, ended.name());
    Ok(ended)
}

impl Ended {
    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotDone => "not done",
            Self::Unknown => "unknown",
            Self::Superseded => "superseded",
        }
    }

    /// How its attempt is counted; none if that is left to its drop.
    fn end(self) -> Option<&'static str> {
        match self {
            Self::Done => Some("completed"),
            Self::NotDone => Some("released"),
            Self::Unknown => None,
            Self::Superseded => Some("superseded"),
        }
    }
}

/// Settles a record that this attempt holds, in one step with the audit, and ends
/// the attempt. None means that it is done.
///
/// If the store does not do it, the attempt is dropped, which leaves the record
/// undecided, if it stands as it did.
async fn audited(
    attempt: Attempt,
    settlement: Settlement,
    ttl_us: Option<i64>,
    note: Note,
) -> Option<Ended> {
    let engine = Arc::clone(&attempt.engine);
    let request = Settle {
        state: None,
        id: attempt.state.holder.id,
        // Larger than that of every other attempt, so it is this one's.
        fence: attempt.state.holder.fence,
        settlement,
        // Its lease is its own.
        force: true,
        ttl_us,
        grace_us: micros(engine.limits.grace),
        note,
    };
    attempt.state.renew_until_recorded();
    engine.renewals.hold(&attempt.state);
    let Some(admin) = engine.store.admin() else {
        return Some(Ended::Unknown);
    };
    let deadline = Instant::now() + engine.limits.reserve_timeout;
    let mut unconfirmed = false;
    for number in 1.. {
        let limit = engine.limits.store_timeout;
        let settled = engine.store_call(StoreStep::Settle, limit, admin.settle(&request));
        let error = match settled.await {
            Ok(Written::Done | Written::AlreadyDone) => {
                attempt.end();
                return None;
            }
            Ok(Written::Gone | Written::Superseded) => {
                let done = unconfirmed && is_kept(&engine, admin, &request).await;
                attempt.end();
                return (!done).then_some(Ended::Superseded);
            }
            Err(error) => error,
        };
        unconfirmed |= error.is_ambiguous();
        let pause = backoff::jittered(number);
        if error.kind() != StoreErrorKind::Transient || Instant::now() + pause >= deadline {
            telemetry::not_recorded(&attempt.state, "settle", &error);
            break;
        }
        tokio::time::sleep(pause).await;
    }
    Some(Ended::Unknown)
}

/// Whether an earlier try is in the audit, whose reply was lost: it has changed
/// the fence, so that the next one is refused.
async fn is_kept(engine: &Inner, admin: &dyn StoreAdmin, request: &Settle) -> bool {
    let limit = engine.limits.store_timeout;
    let audit = engine.store_call(StoreStep::Audit, limit, admin.audit(&request.id));
    let is_it = |entry: &crate::store::Audited| {
        entry.fence == request.fence
            && entry.became == request.settlement.code()
            && entry.note == request.note
    };
    audit.await.is_ok_and(|audit| audit.iter().any(is_it))
}
