//! Asking the outside world about one record.

use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Inner;
use super::verdict::Verdict;
use crate::clock::from_micros;
use crate::context::{self, Context};
use crate::engine::attempt::{Attempt, Phase};
use crate::identity::RecordId;
use crate::outcome;
use crate::panic::CatchPanic;
use crate::policy::Recovered;
use crate::record::Label;
use crate::sync::{Arc, timeout};

/// A record in doubt, as the probe of [`Engine::reconcile`](crate::Engine::reconcile)
/// gets it.
///
/// Nobody has the call's arguments any more: what the probe needs to ask with is
/// in the label, or is a key that the body sent along. [`idem::context`](crate::context)
/// gives the context of the attempt that asks, as in a `recover(…)`.
#[derive(Debug, Clone)]
pub struct Unknown {
    engine: Arc<Inner>,
    record: RecordId,
    label: Option<Label>,
    attempt: u32,
    since: Option<SystemTime>,
}

impl Unknown {
    /// Returns the record's id.
    #[must_use]
    pub fn record_id(&self) -> RecordId {
        self.record
    }

    /// Returns the text that the call's `label` gave, cut to 128 bytes.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_ref().map(Label::as_str)
    }

    /// Returns which attempt asks, from 2: those before it are in doubt, or have
    /// asked in vain.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns since when the record is in doubt, by the store's clock.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.since.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Returns the key that the body sent to the outside system for one of its
    /// effects: [`Context::downstream_key`] with the same label.
    #[must_use]
    pub fn downstream_key(&self, label: &str) -> String {
        self.engine.identity.downstream_key(&self.record, label)
    }
}

/// Runs the probe, inside the context of its attempt. What it finds is written
/// down at once, so that it need not be sent anywhere.
pub(super) async fn ask<T, E, P, F>(attempt: &Attempt, since_us: i64, probe: &mut P) -> Verdict
where
    P: FnMut(Unknown) -> F,
    F: Future<Output = Result<Recovered<T>, E>>,
    T: Serialize + DeserializeOwned,
{
    let (engine, state) = (&attempt.engine, &attempt.state);
    // A drop from here on leaves it undecided.
    state.enter(Phase::Probing);
    let unknown = Unknown {
        engine: Arc::clone(engine),
        record: state.holder.id,
        label: state.prepared.reserve.label.clone(),
        attempt: u32::try_from(state.won.attempt).unwrap_or(0),
        since: SystemTime::UNIX_EPOCH.checked_add(from_micros(since_us)),
    };
    let context = Context::new(Arc::clone(engine), Arc::clone(state), context::current());
    let asked = async { probe(unknown).await };
    let asked = std::pin::pin!(context.scope(outcome::unobserved(asked)));
    // One that hangs must not keep the others waiting for ever, and its lease
    // is not renewed for longer than this.
    match timeout(state.prepared.max_run, CatchPanic(asked)).await {
        Ok(Ok(Ok(Recovered::Done(answer)))) => {
            Verdict::done(&state.holder.id, &answer, engine.limits.answer_limit)
        }
        Ok(Ok(Ok(Recovered::NotDone))) => Verdict::NotDone,
        Ok(Ok(Ok(Recovered::Unknown) | Err(_)) | Err(_)) | Err(_) => Verdict::Undecided,
    }
}
