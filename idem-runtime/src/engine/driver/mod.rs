//! Between a function's own types and the engine's bytes.
//!
//! Generated code is bound by the return type alone: everything that knows `T`,
//! `E` and the codec is behind [`Detach`], [`Enter`] and [`EnterIn`], in [`typed`] on the way in and in
//! [`settle`] on the way out.

mod settle;
mod typed;
mod within;

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

pub(crate) use self::typed::{ops, ops_in_place, ops_within};
pub(crate) use self::within::tx_enter;
pub use self::within::{TxEnded, TxPermit, TxRun, Within, tx_reserve};
use tracing::Instrument as _;

use super::attempt::{Attempt, Phase};
use super::call::Call;
use crate::context::{self, Context};
use crate::fault;
use crate::outcome::{self, Outcome};
use crate::panic::{CatchPanic, Panic};
use crate::sync::Arc;
use crate::telemetry::Watch;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The typed half of a call whose body runs in a task of its own, behind a type
/// that names only its answer.
///
/// Each way to run a body has one of its own, so that for a function's answer no
/// more is compiled than its way needs.
pub struct Ops<R>(Arc<dyn Detach<R>>);

/// The same of a call whose body runs in its caller's task.
pub struct OpsInPlace<R>(Arc<dyn Enter<R>>);

/// The same of a call in its caller's transaction.
pub struct OpsWithin<R>(Arc<dyn EnterIn<R>>);

macro_rules! debug {
    ($ops:ident) => {
        impl<R> std::fmt::Debug for $ops<R> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($ops))
            }
        }
    };
}

debug!(Ops);
debug!(OpsInPlace);
debug!(OpsWithin);

trait Detach<R>: Send + Sync {
    /// Begins the call. Its body runs in a task of its own.
    fn detached(self: Arc<Self>, call: Call, body: Boxed<R>) -> Working<R>;
}

trait Enter<R>: Send + Sync {
    /// Takes the reservation for a body that runs in its caller's task.
    fn enter(self: Arc<Self>, call: Call, watch: Arc<Watch>) -> Boxed<Entered<R>>;
    /// Tells the store how that body ended.
    fn settle(
        self: Arc<Self>,
        attempt: Attempt,
        ended: Result<R, Panic>,
        watch: Arc<Watch>,
    ) -> Boxed<Finished<R>>;
}

trait EnterIn<R>: Send + Sync {
    /// Takes the reservation in the caller's transaction.
    fn enter_in<'s>(
        self: Arc<Self>,
        call: Call,
        watch: Arc<Watch>,
        within: Within,
        session: crate::transaction::Session<'s>,
    ) -> within::OnSession<'s, Entered<R, within::TxAttempt>>;
    /// Records in the same transaction how the body ended.
    fn settle_in<'s>(
        self: Arc<Self>,
        attempt: within::TxAttempt,
        ended: Result<R, Panic>,
        watch: Arc<Watch>,
        session: crate::transaction::Session<'s>,
    ) -> within::OnSession<'s, Finished<R>>;
}

/// Where a call stands that has begun.
enum Working<R> {
    Done(Finished<R>),
    /// This waits for the task that works for it.
    Waits(Boxed<Finished<R>>),
}

/// Where a call in its caller's task stands.
enum Entered<R, A = Attempt> {
    Won(A),
    Unprotected,
    Finished(Finished<R>),
}

/// How a call ended.
struct Finished<R> {
    result: Result<R, Panic>,
    outcome: Outcome,
    /// What an enclosing attempt must know.
    taint: Taint,
    /// What the call is counted as.
    counted: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taint {
    /// The engine found no answer.
    Set(Option<crate::RecordId>),
    /// There is an answer of the record.
    Clear(crate::RecordId),
    /// Neither.
    None,
}

impl<R> Finished<R> {
    fn new(result: Result<R, Panic>, outcome: Outcome, taint: Taint) -> Self {
        let counted = outcome.how.name();
        Self {
            result,
            outcome,
            taint,
            counted,
        }
    }

    /// Of a call without a key, when its body has ended.
    fn unprotected(result: Result<R, Panic>) -> Self {
        Self::new(result, Outcome::unprotected(), Taint::None)
    }

    /// Says that only a probe ran, which came to no decision.
    fn undecided(self) -> Self {
        Self {
            counted: "undecided",
            ..self
        }
    }

    /// Counts the call, before its caller gets the answer.
    fn counted(self, watch: &Watch) -> Self {
        watch.end(self.counted, &self.outcome);
        self
    }

    /// Returns the answer to the caller, in the caller's own task.
    fn give(self, parent: Option<&Context>) -> R {
        if let Some(parent) = parent {
            match self.taint {
                Taint::Set(record) => parent.taint(record),
                Taint::Clear(record) => parent.clear_taint(record),
                Taint::None => {}
            }
        }
        outcome::note(self.outcome);
        match self.result {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// A call whose body runs in a task of its own.
#[must_use = "futures do nothing unless awaited"]
pub struct Detached<R> {
    /// Until the first poll.
    start: Option<Start<R>>,
    /// From then on.
    working: Option<Boxed<Finished<R>>>,
    parent: Option<Context>,
}

/// What a call begins with.
struct Start<R> {
    call: Call,
    ops: Ops<R>,
    body: Boxed<R>,
}

impl<R> std::fmt::Debug for Detached<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Detached")
    }
}

impl<R> Future for Detached<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<R> {
        let this = &mut *self;
        if let Some(start) = this.start.take() {
            this.parent = context::current();
            let Start { call, ops, body } = start;
            match ops.0.detached(call, body) {
                Working::Done(finished) => return Poll::Ready(finished.give(this.parent.as_ref())),
                Working::Waits(waits) => this.working = Some(waits),
            }
        }
        // None only if the start has panicked, and its caller polls again.
        let Some(working) = &mut this.working else {
            return Poll::Pending;
        };
        working
            .as_mut()
            .poll(cx)
            .map(|finished| finished.give(this.parent.as_ref()))
    }
}

/// Runs the body in a task of its own: `on_cancel = finish`.
pub fn detached<R, F>(call: Call, ops: Ops<R>, body: F) -> Detached<R>
where
    F: Future<Output = R> + Send + 'static,
{
    Detached {
        start: Some(Start {
            call,
            ops,
            body: Box::pin(body),
        }),
        working: None,
        parent: None,
    }
}

/// Runs the body in its caller's task: `on_cancel = abandon`.
///
/// Boxed, so that a caller's future grows by a pointer only. It is `Send`
/// exactly if the body is.
#[must_use = "futures do nothing unless awaited"]
pub fn in_place<R, F>(
    call: Call,
    ops: OpsInPlace<R>,
    body: Pin<&mut F>,
) -> Pin<Box<impl Future<Output = R> + use<'_, R, F>>>
where
    F: Future<Output = R>,
{
    Box::pin(enter_and_run(call, ops, body))
}

async fn enter_and_run<R, F>(call: Call, ops: OpsInPlace<R>, body: Pin<&mut F>) -> R
where
    F: Future<Output = R>,
{
    let watch = Watch::begin(call.name());
    let span = watch.span();
    enter_watched(call, watch, ops, body).instrument(span).await
}

async fn enter_watched<R, F>(
    call: Call,
    watch: Arc<Watch>,
    ops: OpsInPlace<R>,
    body: Pin<&mut F>,
) -> R
where
    F: Future<Output = R>,
{
    let parent = context::current();
    let entered = Arc::clone(&ops.0).enter(call, Arc::clone(&watch)).await;
    let finished = match entered {
        Entered::Finished(finished) => finished,
        Entered::Unprotected => {
            let answer = context::unprotected(outcome::unobserved(body)).await;
            outcome::note(Outcome::unprotected());
            return answer;
        }
        Entered::Won(attempt) => {
            let ended = run(&attempt, body, parent.as_ref()).await;
            ops.0.settle(attempt, ended, watch).await
        }
    };
    finished.give(parent.as_ref())
}

/// Step two: polls the body, inside the context of its attempt.
async fn run<R>(
    attempt: &Attempt,
    body: impl Future<Output = R>,
    parent: Option<&Context>,
) -> Result<R, Panic> {
    let state = &attempt.state;
    #[cfg(feature = "testing")]
    let crash = attempt
        .engine
        .rehearsal
        .next_crash(&state.prepared.operation);
    #[cfg(feature = "testing")]
    if crash == Some(super::rehearsal::CrashPoint::BeforeBody) {
        return Err(super::rehearsal::crash());
    }
    state.enter(if state.must_probe() {
        Phase::Probing
    } else {
        Phase::Running
    });
    let context = Context::new(
        Arc::clone(&attempt.engine),
        Arc::clone(state),
        parent.cloned(),
    );
    let body = std::pin::pin!(context.scope(outcome::unobserved(body)));
    let body = CatchPanic(body);
    #[cfg(feature = "testing")]
    let body = super::rehearsal::Mortal { body, state, crash };
    let ended = body.await;
    fault::point("after-body").await;
    ended
}
