//! How an answer came about.

use std::time::{Duration, SystemTime};

use crate::clock::from_micros;
use crate::engine::attempt::AttemptState;
use crate::identity::RecordId;
use crate::singleflight::Landed;
use crate::sync::{Arc, Mutex, lock};

/// How a call got its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum How {
    /// The body ran in this call.
    Executed,
    /// The recorded answer came from the store, or from this engine's
    /// [cache](crate::EngineBuilder::cache).
    Replayed,
    /// The recorded answer came from a call of this process that ran meanwhile.
    Coalesced,
    /// An earlier attempt's answer was found in the outside world.
    Recovered,
    /// A newer version was recorded, and this is its answer: `on_stale = replay`.
    Stale,
    /// The engine gave no answer; the error says why.
    Refused,
    /// There was no key, and the body ran without protection.
    Unprotected,
}

impl How {
    /// Returns the name used in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Replayed => "replayed",
            Self::Coalesced => "coalesced",
            Self::Recovered => "recovered",
            Self::Stale => "stale",
            Self::Refused => "refused",
            Self::Unprotected => "unprotected",
        }
    }
}

/// A report about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Where the answer came from.
    pub how: How,
    /// The attempt whose answer it is, counted from 1; 0 if there is none.
    pub attempt: u32,
    /// Whether the store has confirmed what the record says now. False after an
    /// attempt whose end could not be confirmed: it is told to the store in the
    /// background. It says nothing for [`How::Refused`] and
    /// [`How::Unprotected`].
    pub recorded: bool,
    /// When a replayed answer was recorded, by the store's clock; by this process's
    /// for a coalesced one, and for one that this engine recorded and has in its
    /// cache.
    pub completed_at: Option<SystemTime>,
    /// The record, if there is a key.
    pub record: Option<RecordId>,
}

impl Outcome {
    fn new(how: How, record: Option<RecordId>) -> Self {
        Self {
            how,
            attempt: 0,
            recorded: false,
            completed_at: None,
            record,
        }
    }

    pub(crate) fn unprotected() -> Self {
        Self::new(How::Unprotected, None)
    }

    pub(crate) fn refused(record: Option<RecordId>) -> Self {
        Self::new(How::Refused, record)
    }

    pub(crate) fn executed(state: &AttemptState, recorded: bool) -> Self {
        let how = if state.is_recovered() {
            How::Recovered
        } else {
            How::Executed
        };
        Self {
            attempt: u32::try_from(state.won.attempt).unwrap_or(0),
            recorded,
            ..Self::new(how, Some(state.holder.id))
        }
    }

    pub(crate) fn replayed(how: How, record: RecordId, landed: &Landed) -> Self {
        Self {
            attempt: u32::try_from(landed.attempt).unwrap_or(0),
            recorded: true,
            completed_at: epoch_plus(from_micros(landed.finished_us)),
            ..Self::new(how, Some(record))
        }
    }
}

fn epoch_plus(since: Duration) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(since)
}

type Slot = Arc<Mutex<Option<Outcome>>>;

tokio::task_local! {
    static OBSERVER: Option<Slot>;
}

/// Runs a future, and reports how the last annotated call that it awaited
/// itself got its answer; none if there was no such call.
///
/// Calls made inside the body of that call are not reported.
///
/// # Cancel safety
/// As `future`.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
/// let call = engine.call("greet", &"world", Duration::from_secs(60));
/// let (answer, outcome) = idem::observe(call.run(async { Ok::<_, idem::Error>("hello".to_owned()) })).await;
/// assert_eq!(answer?, "hello");
/// assert_eq!(outcome.map(|outcome| outcome.how), Some(idem::How::Executed));
/// # Ok(()) }
/// ```
pub async fn observe<F: Future>(future: F) -> (F::Output, Option<Outcome>) {
    let slot = Slot::default();
    let output = OBSERVER.scope(Some(Arc::clone(&slot)), future).await;
    let outcome = lock(&slot).take();
    (output, outcome)
}

/// Hides the observer from what runs inside a body.
pub(crate) fn unobserved<F: Future>(future: F) -> impl Future<Output = F::Output> {
    OBSERVER.scope(None, future)
}

pub(crate) fn note(outcome: Outcome) {
    OBSERVER
        .try_with(|slot| {
            if let Some(slot) = slot {
                *lock(slot) = Some(outcome);
            }
        })
        .ok();
}
