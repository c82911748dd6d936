//! The caller's side: reserve, run, complete, on one connection.

use std::ops::ControlFlow;
use std::pin::Pin;

use tracing::Instrument as _;

use super::{TxAttempt, Within};
use crate::context::{self, Context};
use crate::engine::attempt::Phase;
use crate::engine::call::Call;
use crate::engine::driver::{Entered, Finished, OpsWithin};
use crate::fault;
use crate::outcome;
use crate::panic::{CatchPanic, Panic};
use crate::sync::Arc;
use crate::telemetry::Watch;
use crate::transaction::{Session, TxConnection};

/// The right to run a body once in its caller's transaction, and the caller's
/// connection.
#[must_use = "call `run` on its first half, then `complete`"]
pub struct TxPermit<'c, C, R> {
    conn: &'c mut C,
    session: fn(&mut C) -> Session<'_>,
    ops: OpsWithin<R>,
    run: TxRun,
}

/// Runs the body of a [`TxPermit`].
pub struct TxRun {
    /// None if the call has no key.
    attempt: Option<TxAttempt>,
    parent: Option<Context>,
    watch: Arc<Watch>,
}

impl<C, R> std::fmt::Debug for TxPermit<'_, C, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TxPermit")
    }
}

impl std::fmt::Debug for TxRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TxRun")
    }
}

/// How a body in its caller's transaction ended.
pub struct TxEnded<R>(Result<R, Panic>);

impl<R> std::fmt::Debug for TxEnded<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TxEnded")
    }
}

/// Reserves in the caller's transaction: first half of `tx = conn`.
///
/// The one bound on `C` is here, so that a type that is no connection is one
/// error.
#[must_use = "futures do nothing unless awaited"]
pub fn tx_reserve<'c, C, R>(
    call: Call,
    ops: OpsWithin<R>,
    within: Within,
    conn: &'c mut C,
) -> Pin<Box<impl Future<Output = ControlFlow<R, TxPermit<'c, C, R>>> + use<'c, C, R>>>
where
    C: TxConnection,
{
    tx_enter(call, ops, within, conn, C::session)
}

/// As [`tx_reserve`], of a type that is known as a connection by what is given.
pub(crate) fn tx_enter<'c, C, R>(
    call: Call,
    ops: OpsWithin<R>,
    within: Within,
    conn: &'c mut C,
    session: fn(&mut C) -> Session<'_>,
) -> Pin<Box<impl Future<Output = ControlFlow<R, TxPermit<'c, C, R>>> + use<'c, C, R>>> {
    Box::pin(async move {
        let parent = context::current();
        let watch = Watch::begin(call.name());
        let entered = Arc::clone(&ops.0)
            .enter_in(call, Arc::clone(&watch), within, session(conn))
            .instrument(watch.span())
            .await;
        let attempt = match entered {
            Entered::Finished(finished) => {
                return ControlFlow::Break(finished.give(parent.as_ref()));
            }
            Entered::Unprotected => None,
            Entered::Won(attempt) => Some(attempt),
        };
        ControlFlow::Continue(TxPermit {
            conn,
            session,
            ops,
            run: TxRun {
                attempt,
                parent,
                watch,
            },
        })
    })
}

impl<'c, C, R> TxPermit<'c, C, R> {
    /// Takes the connection out for the body.
    pub fn split(&mut self) -> (&TxRun, &mut C) {
        (&self.run, self.conn)
    }

    /// Records how the body ended: second half of `tx = conn`.
    #[must_use = "futures do nothing unless awaited"]
    pub fn complete(self, ended: TxEnded<R>) -> Pin<Box<impl Future<Output = R> + use<'c, C, R>>> {
        Box::pin(async move {
            let TxRun {
                attempt,
                parent,
                watch,
            } = self.run;
            let finished = match attempt {
                Some(attempt) => {
                    let session = (self.session)(self.conn);
                    let span = watch.span();
                    let settled = self.ops.0.settle_in(attempt, ended.0, watch, session);
                    settled.instrument(span).await
                }
                None => Finished::unprotected(ended.0),
            };
            finished.give(parent.as_ref())
        })
    }
}

impl TxRun {
    /// Polls the body, inside the context of its attempt.
    ///
    /// Boxed, so that a caller's future grows by a pointer only. It is `Send`
    /// exactly if the body is.
    #[must_use = "futures do nothing unless awaited"]
    pub fn run<'r, R, F>(
        &'r self,
        future: Pin<&'r mut F>,
    ) -> Pin<Box<impl Future<Output = TxEnded<R>> + use<'r, R, F>>>
    where
        F: Future<Output = R>,
    {
        let span = self.watch.span();
        let run = async move {
            let Some(TxAttempt { engine, state, .. }) = &self.attempt else {
                let unprotected = context::unprotected(outcome::unobserved(future));
                let unprotected = std::pin::pin!(unprotected);
                return TxEnded(CatchPanic(unprotected).await);
            };
            fault::point("before-body").await;
            state.enter(Phase::Running);
            let context = Context::new(Arc::clone(engine), Arc::clone(state), self.parent.clone());
            let body = std::pin::pin!(context.scope(outcome::unobserved(future)));
            let ended = CatchPanic(body).await;
            fault::point("after-body").await;
            TxEnded(ended)
        };
        Box::pin(run.instrument(span))
    }
}
