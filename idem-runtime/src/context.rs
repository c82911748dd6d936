//! What a body may ask about its own attempt.

use crate::engine::attempt::AttemptState;
use crate::engine::tracker::Tracked;
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::identity::RecordId;
use crate::sync::Arc;

tokio::task_local! {
    static CURRENT: Option<Context>;
    static ENGINE: Option<Engine>;
    /// Ends with the task's future, before its caller has the answer.
    static TRACKED: Tracked;
}

/// The attempt whose body asks; see [`context`].
///
/// `Clone` and cheap. A task that the body spawns has no context unless it is
/// given one with [`scope`](Self::scope).
#[derive(Debug, Clone)]
pub struct Context(Arc<Frame>);

#[derive(Debug)]
struct Frame {
    engine: Arc<Inner>,
    state: Arc<AttemptState>,
    /// The attempt whose body made this call.
    parent: Option<Context>,
    /// False inside of a call that runs without a key: what it holds and what
    /// it spoils are its caller's, and there is no attempt of its own to ask
    /// about.
    protected: bool,
    /// Whether a step of the body runs here.
    within_step: bool,
}

/// Returns the context of the body that calls this.
///
/// # Errors
/// [`Error::NoContext`] outside of a body.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
/// let key: Result<String, idem::Error> = engine
///     .call("payments.charge", &"o-7", Duration::from_secs(60))
///     .run(async { Ok(idem::context()?.downstream_key("capture")) })
///     .await;
/// assert_eq!(key?.len(), 64);
/// assert_eq!(idem::context().err(), Some(idem::Error::NoContext));
/// # Ok(()) }
/// ```
pub fn context() -> Result<Context, Error> {
    current()
        .filter(|context| context.0.protected)
        .ok_or(Error::NoContext)
}

impl Context {
    pub(crate) fn new(engine: Arc<Inner>, state: Arc<AttemptState>, parent: Option<Self>) -> Self {
        Self(Arc::new(Frame {
            engine,
            state,
            parent,
            protected: true,
            within_step: false,
        }))
    }

    /// Returns which attempt this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        u32::try_from(self.0.state.won.attempt).unwrap_or(0)
    }

    /// Returns the store's number of this attempt, which is larger than that of
    /// every earlier one. A resource that refuses smaller numbers keeps out a
    /// holder that was paused past its lease.
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.0.state.won.fence
    }

    /// Returns whether an earlier attempt may have had its effect.
    #[must_use]
    pub fn is_reattempt(&self) -> bool {
        self.0.state.won.doubt
    }

    /// Returns the record's id.
    #[must_use]
    pub fn record_id(&self) -> RecordId {
        self.0.state.holder.id
    }

    /// Returns the key to send to the outside system for one of this body's
    /// effects: 64 hexadecimal digits, the same in every attempt.
    ///
    /// It makes a repeated effect one, as long as that system remembers it;
    /// many forget after 24 hours.
    #[must_use]
    pub fn downstream_key(&self, label: &str) -> String {
        let id = self.record_id();
        self.0.engine.identity.downstream_key(&id, label)
    }

    /// Confirms right before something irreversible that this attempt still
    /// holds the key, by renewing its lease.
    ///
    /// In the caller's transaction (`tx`) there is no lease to lose: it is held,
    /// and nothing is asked.
    ///
    /// This narrows the window in which a paused holder acts late; only a
    /// resource that compares [`fence`](Self::fence) or honours
    /// [`downstream_key`](Self::downstream_key) closes it.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing; the lease may have been renewed.
    ///
    /// # Errors
    /// [`Error::Superseded`] if the lease has ended or another attempt took
    /// over; [`Error::Store`] if the store does not confirm it.
    pub async fn ensure_held(&self) -> Result<(), Error> {
        let held = self.confirm().await;
        match &held {
            Ok(()) => self.clear_taint(self.record_id()),
            Err(_) => self.taint(Some(self.record_id())),
        }
        held
    }

    async fn confirm(&self) -> Result<(), Error> {
        let Frame { engine, state, .. } = &*self.0;
        if state.is_in_transaction() {
            return Ok(());
        }
        let now_us = || crate::clock::micros(engine.clock.monotonic());
        if state.is_lost_at(now_us()) {
            return Err(Error::Superseded);
        }
        let held = engine.renewals.confirm(state).await?;
        if !held || state.is_lost_at(now_us()) {
            return Err(Error::Superseded);
        }
        Ok(())
    }

    /// Carries this context into a future, such as a task that the body spawns.
    ///
    /// # Cancel safety
    /// As `future`.
    pub fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(Some(self.clone()), future)
    }

    /// Whether this body, or one that called it, holds the key.
    pub(crate) fn holds(&self, engine: &Arc<Inner>, id: &RecordId) -> bool {
        let mut frame = Some(self);
        while let Some(Self(here)) = frame {
            if here.state.holder.id == *id && Arc::ptr_eq(&here.engine, engine) {
                return true;
            }
            frame = here.parent.as_ref();
        }
        false
    }

    /// The same context, for the future of a step.
    pub(crate) fn within_step(&self) -> Self {
        let Frame {
            engine,
            state,
            parent,
            protected,
            ..
        } = &*self.0;
        Self(Arc::new(Frame {
            engine: Arc::clone(engine),
            state: Arc::clone(state),
            parent: parent.clone(),
            protected: *protected,
            within_step: true,
        }))
    }

    pub(crate) fn is_within_step(&self) -> bool {
        self.0.within_step
    }

    pub(crate) fn engine(&self) -> &Arc<Inner> {
        &self.0.engine
    }

    pub(crate) fn state(&self) -> &Arc<AttemptState> {
        &self.0.state
    }

    pub(crate) fn taint(&self, record: Option<RecordId>) {
        self.0.state.taint(record);
    }

    pub(crate) fn clear_taint(&self, record: RecordId) {
        self.0.state.clear_taint(record);
    }
}

pub(crate) fn current() -> Option<Context> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

pub(crate) fn scoped_engine() -> Option<Engine> {
    ENGINE.try_with(Clone::clone).ok().flatten()
}

pub(crate) fn with_engine<F: Future>(
    engine: Engine,
    future: F,
) -> impl Future<Output = F::Output> + use<F> {
    ENGINE.scope(Some(engine), future)
}

/// Runs the body of a call without a key.
pub(crate) fn unprotected<F: Future>(body: F) -> impl Future<Output = F::Output> {
    let within = current().map(|context| {
        let Frame {
            engine,
            state,
            parent,
            ..
        } = &*context.0;
        Context(Arc::new(Frame {
            engine: Arc::clone(engine),
            state: Arc::clone(state),
            parent: parent.clone(),
            protected: false,
            within_step: false,
        }))
    });
    CURRENT.scope(within, body)
}

/// Carries the caller's engine and held keys into a task, which is `tracked`
/// until it ends.
///
/// All of it lies around the future: a block that awaited it would keep room
/// for it twice.
pub(crate) fn carry<F: Future>(
    tracked: Tracked,
    future: F,
) -> impl Future<Output = F::Output> + use<F> {
    let carried = ENGINE.scope(scoped_engine(), CURRENT.scope(current(), future));
    TRACKED.scope(tracked, carried)
}
