//! The recovery points of one attempt: which steps it has begun, and which an
//! earlier one has finished.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::attempt::AttemptState;
use super::call::Prepared;
use super::{Inner, Spawned};
use crate::backoff;
use crate::context::Context;
use crate::error::{Error, StepReason, StoreError, StoreErrorKind};
use crate::store::{Capability, Holder, RecordStep, Step};
use crate::sync::{Arc, Mutex, OnceCell, lock};
use crate::telemetry::{self, StoreStep};

/// The codec of every step.
pub(crate) const CODEC: &str = "json/1";

/// What an attempt knows of its steps.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    begun: Mutex<Begun>,
    /// What earlier attempts have finished, by label; asked for once.
    finished: OnceCell<HashMap<String, Step>>,
}

#[derive(Debug, Default)]
struct Begun {
    labels: HashSet<String>,
    running: usize,
}

/// A step from its beginning to its end, however it ends.
#[derive(Debug)]
pub(crate) struct Running {
    state: Arc<AttemptState>,
    label: String,
    number: i32,
    /// None if it began while another one ran.
    position: Option<i32>,
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.state.steps.begun).running -= 1;
    }
}

/// Begins a step, before anything of it runs.
pub(crate) fn begin(context: &Context, label: &str) -> Result<Running, Error> {
    const MAX_LABEL: usize = 128;
    let (engine, state) = (context.engine(), context.state());
    let refused = |reason| {
        let shown = &label[..label.floor_char_boundary(MAX_LABEL)];
        Err(Error::step(shown, reason))
    };
    if label.is_empty() || label.len() > MAX_LABEL || label.contains(char::is_control) {
        return refused(StepReason::Label);
    }
    if context.is_within_step() {
        return refused(StepReason::Nested);
    }
    if state.is_in_transaction() {
        return refused(StepReason::InTransaction);
    }
    if engine.store.lacks().contains(&Capability::Steps) {
        return refused(StepReason::NotSupported);
    }
    // What cannot be kept any more is better not done.
    if state.is_lost_at(crate::clock::micros(engine.clock.monotonic())) {
        return Err(Error::Superseded);
    }
    let mut begun = lock(&state.steps.begun);
    let number = i32::try_from(begun.labels.len()).unwrap_or(i32::MAX);
    if !begun.labels.insert(label.to_owned()) {
        return refused(StepReason::Repeated);
    }
    let alone = begun.running == 0;
    begun.running += 1;
    Ok(Running {
        state: Arc::clone(state),
        label: label.to_owned(),
        number,
        position: alone.then_some(number),
    })
}

impl Running {
    /// Returns what an earlier attempt has finished of this step. Only a
    /// takeover asks the store, once.
    pub(crate) async fn finished(&self, engine: &Arc<Inner>) -> Result<Option<Step>, Error> {
        let state = &self.state;
        if !state.won.doubt {
            return Ok(None);
        }
        let load = || load(engine, state);
        let finished = state.steps.finished.get_or_try_init(load).await?;
        if let Some(step) = finished.get(&self.label) {
            return Ok(Some(step.clone()));
        }
        // It was not finished, so every step that stood where this one begins,
        // or before it, has been asked for by now, or has another label today.
        let begun = lock(&state.steps.begun);
        let stood_here = |step: &Step| {
            step.position.is_some_and(|at| at <= self.number) && !begun.labels.contains(&step.label)
        };
        if finished.values().any(stood_here) {
            return Err(Error::step(&self.label, StepReason::Changed));
        }
        Ok(None)
    }

    /// Keeps what the step gave, out of reach of the caller's cancellation.
    pub(crate) async fn record(&self, engine: &Arc<Inner>, bytes: Vec<u8>) -> Result<(), Error> {
        let holder = self.state.holder;
        let basis = basis(&self.state.prepared);
        let request = RecordStep {
            holder,
            step: Step::new(&holder.id, &self.label, self.position, basis, CODEC, bytes),
        };
        let (state, within) = (Arc::clone(&self.state), Arc::clone(engine));
        let work = engine.spawn(async move {
            let store = &within.store;
            let written = repeat(&within, || store.record_step(&request)).await;
            if let Err(error) = &written {
                telemetry::not_recorded(&state, "step", error);
            }
            Some(written)
        });
        match work.await {
            Spawned::Done(Ok(written)) if written.is_done() => Ok(()),
            Spawned::Done(Ok(_)) => {
                telemetry::not_held(&self.state, "step");
                Err(Error::Superseded)
            }
            Spawned::Done(Err(error)) => Err(error.into()),
            Spawned::Panicked(_) | Spawned::Gone => Err(Error::ShuttingDown),
        }
    }
}

async fn load(
    engine: &Arc<Inner>,
    state: &Arc<AttemptState>,
) -> Result<HashMap<String, Step>, Error> {
    let holder: Holder = state.holder;
    let within = Arc::clone(engine);
    let work = engine.spawn(async move {
        let store = &within.store;
        Some(repeat(&within, || store.steps(&holder)).await)
    });
    let steps = match work.await {
        Spawned::Done(steps) => steps?.ok_or(Error::Superseded)?,
        Spawned::Panicked(_) | Spawned::Gone => return Err(Error::ShuttingDown),
    };
    let basis = basis(&state.prepared);
    let ours = steps.into_iter().filter(|step| step.basis == basis);
    Ok(ours.map(|step| (step.label.clone(), step)).collect())
}

/// What a step belongs to besides its key. A newer version that takes over an
/// older one does other work under the same labels.
fn basis(prepared: &Prepared) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(prepared.reserve.fingerprint.as_bytes());
    if let Some(version) = &prepared.reserve.version {
        hash.update(version.as_bytes());
    }
    hash.finalize().into()
}

/// Makes a store call that may be made twice, until it is answered or the time
/// for it is over.
async fn repeat<T, C>(engine: &Inner, call: impl Fn() -> C) -> Result<T, StoreError>
where
    C: Future<Output = Result<T, StoreError>>,
{
    let limit = engine.limits.store_timeout;
    let deadline = Instant::now() + limit;
    let mut number = 1;
    loop {
        let error = match engine.store_call(StoreStep::Step, limit, call()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let pause = backoff::jittered(number);
        if error.kind() != StoreErrorKind::Transient || Instant::now() + pause >= deadline {
            return Err(error);
        }
        tokio::time::sleep(pause).await;
        number += 1;
    }
}
