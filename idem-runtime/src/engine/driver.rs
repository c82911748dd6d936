//! Between a function's own types and the engine's bytes.
//!
//! Everything that knows `T`, `E` and the codec is here, behind
//! [`Driver`], so that generated code is bound by the return type alone.

use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use super::attempt::{Attempt, Phase};
use super::call::{Call, Prepared};
use super::conclude::{End, Told, tell};
use super::enter::{Caller, Entry, Presence, enter, read_recorded};
use super::{Engine, Inner, Spawned};
use crate::answer::{ErrorMapping, ErrorPolicy, Keep};
use crate::codec::{Codec, Kept};
use crate::context::{self, Context};
use crate::error::Error;
use crate::fault;
use crate::outcome::{self, How, Outcome};
use crate::panic::{CatchPanic, Panic};
use crate::policy::Disposition;
use crate::record::{Recorded, TombstoneReason, UnknownReason};
use crate::singleflight::Landed;
use crate::store::{Complete, Ending, Release};
use crate::sync::Arc;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The typed half of a call, behind a type that names only its answer.
pub struct Ops<R>(Arc<dyn Driver<R>>);

impl<R> std::fmt::Debug for Ops<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ops")
    }
}

impl<R> Clone for Ops<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

trait Driver<R>: Send + Sync {
    /// Runs the body in a task of its own.
    fn detached(self: Arc<Self>, call: Call, body: Boxed<R>) -> Boxed<Finished<R>>;
    /// Takes the reservation for a body that runs in its caller's task.
    fn enter(self: Arc<Self>, call: Call) -> Boxed<Entered<R>>;
    /// Tells the store how that body ended.
    fn settle(self: Arc<Self>, attempt: Attempt, ended: Result<R, Panic>) -> Boxed<Finished<R>>;
}

/// Where a call in its caller's task stands.
enum Entered<R> {
    Won(Attempt),
    Unprotected,
    Finished(Finished<R>),
}

/// How a call ended.
struct Finished<R> {
    result: Result<R, Panic>,
    outcome: Outcome,
    /// What an enclosing attempt must know.
    taint: Taint,
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

/// Makes the typed half for one return type.
pub(crate) fn ops<T, E, C, P, M>(policy: P, map: M) -> Ops<Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    Ops(Arc::new(Typed::<T, E, C, P, M> {
        policy,
        map,
        types: PhantomData,
    }))
}

/// A call whose body runs in a task of its own.
#[must_use = "futures do nothing unless awaited"]
pub struct Detached<R> {
    future: Boxed<Finished<R>>,
    parent: Option<Option<Context>>,
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
        let parent = this.parent.get_or_insert_with(context::current);
        this.future
            .as_mut()
            .poll(cx)
            .map(|finished| finished.give(parent.as_ref()))
    }
}

/// Runs the body in a task of its own: `on_cancel = finish`.
pub fn detached<R, F>(call: Call, ops: Ops<R>, body: F) -> Detached<R>
where
    F: Future<Output = R> + Send + 'static,
{
    Detached {
        future: ops.0.detached(call, Box::pin(body)),
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
    ops: Ops<R>,
    body: Pin<&mut F>,
) -> Pin<Box<impl Future<Output = R> + use<'_, R, F>>>
where
    F: Future<Output = R>,
{
    Box::pin(enter_and_run(call, ops, body))
}

async fn enter_and_run<R, F>(call: Call, ops: Ops<R>, body: Pin<&mut F>) -> R
where
    F: Future<Output = R>,
{
    let parent = context::current();
    let entered = Arc::clone(&ops.0).enter(call).await;
    let finished = match entered {
        Entered::Finished(finished) => finished,
        Entered::Unprotected => {
            let answer = context::unprotected(outcome::unobserved(body)).await;
            outcome::note(Outcome::unprotected());
            return answer;
        }
        Entered::Won(attempt) => {
            let ended = run(&attempt, body, parent.as_ref()).await;
            ops.0.settle(attempt, ended).await
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

struct Typed<T, E, C, P, M> {
    policy: P,
    map: M,
    types: Types<T, E, C>,
}

/// Names types without owning values of them.
type Types<T, E, C> = PhantomData<fn() -> (T, E, C)>;

impl<T, E, C, P, M> Driver<Result<T, E>> for Typed<T, E, C, P, M>
where
    T: Send + 'static,
    E: Send + 'static,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    fn detached(
        self: Arc<Self>,
        call: Call,
        body: Boxed<Result<T, E>>,
    ) -> Boxed<Finished<Result<T, E>>> {
        Box::pin(async move {
            let (engine, prepared, parent) = match self.open(call) {
                Opened::Ready(engine, prepared, parent) => (engine, prepared, parent),
                Opened::Unprotected => {
                    return Finished {
                        result: Ok(context::unprotected(outcome::unobserved(body)).await),
                        outcome: Outcome::unprotected(),
                        taint: Taint::None,
                    };
                }
                Opened::Refused(error, record) => return self.refuse(error, record),
            };
            let presence = Presence::new();
            let caller = Caller(Arc::clone(&presence));
            let id = prepared.id();
            let task_of = Arc::clone(&engine);
            let this = Arc::clone(&self);
            let work = async move {
                match enter(&engine, &prepared, &presence).await {
                    Entry::Won(attempt) => {
                        fault::point("before-body").await;
                        // In both cases, dropping the attempt gives the
                        // reservation back.
                        if !presence.begin() {
                            return None;
                        }
                        if attempt.engine.is_drained() {
                            return Some(this.refuse(Error::ShuttingDown, Some(id)));
                        }
                        let ended = run(&attempt, body, parent.as_ref()).await;
                        Some(this.conclude(attempt, ended).await)
                    }
                    entry => this.answer(&prepared, entry),
                }
            };
            let spawned = task_of.spawn(work).await;
            drop(caller);
            self.finished(spawned, id)
        })
    }

    fn enter(self: Arc<Self>, call: Call) -> Boxed<Entered<Result<T, E>>> {
        Box::pin(async move {
            let (engine, prepared) = match self.open(call) {
                Opened::Ready(engine, prepared, _) => (engine, prepared),
                Opened::Unprotected => return Entered::Unprotected,
                Opened::Refused(error, record) => {
                    return Entered::Finished(self.refuse(error, record));
                }
            };
            let presence = Presence::new();
            let caller = Caller(Arc::clone(&presence));
            let id = prepared.id();
            let task_of = Arc::clone(&engine);
            let this = Arc::clone(&self);
            let work = async move {
                match enter(&engine, &prepared, &presence).await {
                    Entry::Won(attempt) => {
                        fault::point("before-body").await;
                        // If the caller is gone, nobody takes this up, and
                        // dropping it gives the reservation back.
                        Some(if attempt.engine.is_drained() {
                            Entered::Finished(this.refuse(Error::ShuttingDown, Some(id)))
                        } else {
                            Entered::Won(attempt)
                        })
                    }
                    entry => this.answer(&prepared, entry).map(Entered::Finished),
                }
            };
            let spawned = task_of.spawn(work).await;
            drop(caller);
            match spawned {
                Spawned::Done(entered) => entered,
                Spawned::Panicked(panic) => {
                    Entered::Finished(self.finished(Spawned::Panicked(panic), id))
                }
                Spawned::Gone => Entered::Finished(self.finished(Spawned::Gone, id)),
            }
        })
    }

    fn settle(
        self: Arc<Self>,
        attempt: Attempt,
        ended: Result<Result<T, E>, Panic>,
    ) -> Boxed<Finished<Result<T, E>>> {
        let id = attempt.state.holder.id;
        let this = Arc::clone(&self);
        // Spawned now, not when polled: what has returned is always recorded.
        let engine = Arc::clone(&attempt.engine);
        let work = engine.spawn(async move { Some(this.conclude(attempt, ended).await) });
        Box::pin(async move { self.finished(work.await, id) })
    }
}

/// A call before anything is awaited.
enum Opened {
    Ready(Arc<Inner>, Arc<Prepared>, Option<Context>),
    Unprotected,
    Refused(Error, Option<crate::RecordId>),
}

impl<T, E, C, P, M> Typed<T, E, C, P, M>
where
    T: Send + 'static,
    E: Send + 'static,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    fn open(&self, call: Call) -> Opened {
        if call.is_unprotected() {
            crate::telemetry::unprotected(call.name());
            return Opened::Unprotected;
        }
        let engine = match Engine::find(call.engine.as_ref()) {
            Ok(engine) => engine.inner,
            Err(error) => return Opened::Refused(error, None),
        };
        let prepared = match call.prepare(&engine, C::ID, TypeId::of::<Result<T, E>>()) {
            Ok(prepared) => Arc::new(prepared),
            Err(error) => return Opened::Refused(error, None),
        };
        let id = prepared.id();
        if engine.is_closing() {
            return Opened::Refused(Error::ShuttingDown, Some(id));
        }
        // Found before anything is reserved: without it nothing can be spawned.
        if engine.runtime().is_none() {
            return Opened::Refused(
                Error::misuse(
                    "there is no tokio runtime: call from inside one, or build the engine inside one",
                ),
                Some(id),
            );
        }
        let parent = context::current();
        if parent
            .as_ref()
            .is_some_and(|parent| parent.holds(&engine, &id))
        {
            return Opened::Refused(Error::Reentrant, Some(id));
        }
        Opened::Ready(engine, prepared, parent)
    }

    /// How a call ended whose task did.
    fn finished(
        &self,
        spawned: Spawned<Finished<Result<T, E>>>,
        id: crate::RecordId,
    ) -> Finished<Result<T, E>> {
        match spawned {
            Spawned::Done(finished) => finished,
            // In the user's `Serialize`, `classify` or the like: it goes on in
            // the caller, like a panic of the body.
            Spawned::Panicked(panic) => Finished {
                result: Err(panic),
                outcome: Outcome::refused(Some(id)),
                taint: Taint::Set(Some(id)),
            },
            Spawned::Gone => self.refuse(Error::ShuttingDown, Some(id)),
        }
    }

    fn refuse(&self, error: Error, record: Option<crate::RecordId>) -> Finished<Result<T, E>> {
        crate::telemetry::refused(&error);
        let taint = match &error {
            // Its own record answers later, and must not clear this.
            Error::Reentrant => Taint::Set(None),
            error if error.taints() => Taint::Set(record),
            _ => Taint::None,
        };
        Finished {
            result: Ok(Err(self.map.map(error))),
            outcome: Outcome::refused(record),
            taint,
        }
    }

    /// Gives what the store had, without polling the body. None if the caller
    /// has left.
    fn answer(&self, prepared: &Prepared, entry: Entry) -> Option<Finished<Result<T, E>>> {
        let id = prepared.id();
        match entry {
            Entry::Recorded { landed, coalesced } => {
                let how = if coalesced {
                    How::Coalesced
                } else {
                    How::Replayed
                };
                crate::telemetry::call(&prepared.operation, how);
                Some(self.replay(id, &landed, how))
            }
            Entry::Refused(error) => Some(self.refuse(error, Some(id))),
            Entry::Left | Entry::Won(_) => None,
        }
    }

    /// Step four: gives a recorded answer back.
    fn replay(&self, id: crate::RecordId, landed: &Landed, how: How) -> Finished<Result<T, E>> {
        let reason = if landed.answer.codec == Self::codec(landed.answer.failed) {
            match C::decode(&landed.answer.bytes) {
                Ok(answer) => {
                    return Finished {
                        result: Ok(self.restore(answer)),
                        outcome: Outcome::replayed(how, id, landed),
                        taint: Taint::Clear(id),
                    };
                }
                Err(_) => TombstoneReason::NotDecodable,
            }
        } else {
            TombstoneReason::OtherCodec
        };
        self.refuse(Error::NotReplayable { reason }, Some(id))
    }

    /// The id under which an answer is stored.
    fn codec(failed: bool) -> Cow<'static, str> {
        if failed && P::TEXT {
            Cow::Owned(format!("{}+text", C::ID))
        } else {
            Cow::Borrowed(C::ID)
        }
    }

    fn restore(&self, answer: Result<T, P::Kept>) -> Result<T, E> {
        answer.map_err(|kept| P::restore(kept, &self.map))
    }

    /// Step three: decides what the body's end means, and records it.
    async fn conclude(
        &self,
        attempt: Attempt,
        ended: Result<Result<T, E>, Panic>,
    ) -> Finished<Result<T, E>> {
        let state = Arc::clone(&attempt.state);
        let probing = state.phase() == Phase::Probing;
        state.enter(Phase::Returned);
        let result = match ended {
            Ok(result) => result,
            #[cfg(feature = "testing")]
            Err(panic) if super::rehearsal::is_crash(&*panic) => {
                super::rehearsal::leave_behind(attempt);
                return self.refuse(Error::ShuttingDown, Some(state.holder.id));
            }
            Err(panic) => {
                let end = End::Unknown(if probing {
                    state.mark_undecided()
                } else {
                    state.mark_unknown(UnknownReason::Panicked)
                });
                let (told, lead) = tell(attempt, end).await;
                drop(lead);
                return Finished {
                    result: Err(panic),
                    outcome: Outcome::executed(&state, told == Told::Yes),
                    taint: Taint::Set(Some(state.holder.id)),
                };
            }
        };
        if state.is_undecided() {
            let end = End::Unknown(state.mark_undecided());
            return self.unrecorded(attempt, end, result).await;
        }
        match self.sort(&state, &result) {
            Disposition::Store => self.record(attempt, result).await,
            Disposition::Release => {
                let end = End::Release(Release {
                    holder: state.holder,
                    ttl_us: state.prepared.ttl_us,
                    probed: state.is_probed(),
                });
                self.unrecorded(attempt, end, result).await
            }
            Disposition::Unknown => {
                let reason = if state.is_tainted() {
                    UnknownReason::Nested
                } else {
                    UnknownReason::Failed
                };
                let end = End::Unknown(state.mark_unknown(reason));
                self.unrecorded(attempt, end, result).await
            }
        }
    }

    fn sort(&self, state: &super::attempt::AttemptState, result: &Result<T, E>) -> Disposition {
        match result {
            Ok(_) => Disposition::Store,
            // Our own "try later" must not become the recorded answer.
            Err(_) if state.is_tainted() && !P::DECIDES => Disposition::Unknown,
            Err(error) => self.policy.sort(error),
        }
    }

    /// Ends an attempt without an answer: the caller gets its own.
    async fn unrecorded(
        &self,
        attempt: Attempt,
        end: End,
        result: Result<T, E>,
    ) -> Finished<Result<T, E>> {
        let state = Arc::clone(&attempt.state);
        let (told, lead) = tell(attempt, end).await;
        drop(lead);
        let undecided = state.is_undecided();
        Finished {
            result: Ok(result),
            outcome: if undecided {
                Outcome::refused(Some(state.holder.id))
            } else {
                Outcome::executed(&state, told == Told::Yes)
            },
            // What came up inside of it comes up in its caller.
            taint: if undecided || state.is_tainted() {
                Taint::Set(Some(state.holder.id))
            } else {
                Taint::None
            },
        }
    }

    /// Records an answer, and gives the copy that every replay will equal.
    async fn record(&self, attempt: Attempt, result: Result<T, E>) -> Finished<Result<T, E>> {
        let state = Arc::clone(&attempt.state);
        let engine = Arc::clone(&attempt.engine);
        let id = state.holder.id;
        let failed = result.is_err();
        let (own, kept) = self.encode(result, engine.limits.answer_limit).await;
        let (copy, ending) = match kept {
            Kept::Bytes(bytes) => match C::decode(&bytes) {
                Ok(copy) => {
                    let answer = Recorded::new(&id, &Self::codec(failed), failed, bytes);
                    (Some(copy), Ending::Answer(answer))
                }
                Err(_) => (None, Ending::Tombstone(TombstoneReason::NotDecodable)),
            },
            Kept::Nothing(reason) => (None, Ending::Tombstone(reason)),
        };
        let end = End::Complete(Complete {
            holder: state.holder,
            ending: ending.clone(),
            ttl_us: state.prepared.ttl_us,
        });
        let (told, lead) = tell(attempt, end).await;
        if told == Told::Superseded {
            drop(lead);
            return match read_recorded(&engine, &state.prepared).await {
                Some(landed) => self.replay(id, &landed, How::Replayed),
                None => self.refuse(Error::Superseded, Some(id)),
            };
        }
        if let (Told::Yes, Some(lead), Ending::Answer(answer)) = (told, lead, ending) {
            lead.land(&Arc::new(Landed {
                answer,
                finished_us: engine.clock.unix_us(),
                attempt: state.won.attempt,
            }));
        }
        let result = match (own, copy) {
            // The first caller's own error, where only its text was kept.
            (Own::Error(error), _) => Err(error),
            (_, Some(copy)) => self.restore(copy),
            (Own::Answer(answer), None) => self.restore(answer),
        };
        let outcome = Outcome::executed(&state, told == Told::Yes);
        crate::telemetry::call(&state.prepared.operation, outcome.how);
        Finished {
            result: Ok(result),
            outcome,
            taint: Taint::Clear(id),
        }
    }

    async fn encode(&self, result: Result<T, E>, limit: usize) -> (Own<T, E, P::Kept>, Kept) {
        let (answer, own) = match result {
            Ok(answer) => (Ok(answer), None),
            Err(error) => match self.policy.keep(error) {
                Keep::Whole(kept) => (Err(kept), None),
                Keep::Part(kept, error) => (Err(kept), Some(error)),
                Keep::Nothing(error) => {
                    return (
                        Own::Error(error),
                        Kept::Nothing(TombstoneReason::NotEncodable),
                    );
                }
            },
        };
        let (answer, kept) = C::encode(answer, limit).await;
        match own {
            Some(error) => (Own::Error(error), kept),
            None => (Own::Answer(answer), kept),
        }
    }
}

/// What the body itself returned.
enum Own<T, E, K> {
    Answer(Result<T, K>),
    Error(E),
}
