//! The way in: from a call to a reservation or an answer.

use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;

use tracing::Instrument as _;

use super::within::{OnSession, TxAttempt};
use super::{
    Boxed, Detach, Enter, EnterIn, Entered, Finished, Ops, OpsInPlace, OpsWithin, Taint, Working,
    run,
};
use crate::answer::{ErrorMapping, ErrorPolicy};
use crate::codec::Codec;
use crate::context::{self, Context};
use crate::engine::attempt::Attempt;
use crate::engine::call::{Call, Identified, Prepared};
use crate::engine::enter::{Caller, Entry, Presence, enter};
use crate::engine::{Engine, Inner, Spawned};
use crate::error::Error;
use crate::fault;
use crate::outcome::{self, How, Outcome};
use crate::panic::Panic;
use crate::record::TombstoneReason;
use crate::singleflight::{FlightKey, Landed};
use crate::sync::Arc;
use crate::telemetry::Watch;

macro_rules! makes {
    ($(#[$doc:meta])* $make:ident, $ops:ident) => {
        $(#[$doc])*
        pub(crate) fn $make<T, E, C, P, M>(policy: P, map: M) -> $ops<Result<T, E>>
        where
            T: Send + 'static,
            E: Send + 'static,
            P: ErrorPolicy<E>,
            M: ErrorMapping<E>,
            C: Codec<T, P::Kept>,
        {
            $ops(Arc::new(Typed::<T, E, C, P, M> {
                policy,
                map,
                types: PhantomData,
            }))
        }
    };
}

makes!(
    /// Makes the typed half for one return type.
    ops,
    Ops
);
makes!(
    /// Makes it for bodies that run in their caller's task.
    ops_in_place,
    OpsInPlace
);
makes!(
    /// Makes it for calls in their caller's transaction.
    ops_within,
    OpsWithin
);

pub(super) struct Typed<T, E, C, P, M> {
    pub(super) policy: P,
    map: M,
    types: Types<T, E, C>,
}

/// Names types without owning values of them.
type Types<T, E, C> = PhantomData<fn() -> (T, E, C)>;

impl<T, E, C, P, M> Detach<Result<T, E>> for Typed<T, E, C, P, M>
where
    T: Send + 'static,
    E: Send + 'static,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    fn detached(self: Arc<Self>, call: Call, body: Boxed<Result<T, E>>) -> Working<Result<T, E>> {
        let watch = Watch::begin(call.name());
        let span = watch.span();
        match span.in_scope(|| self.detached_watched(call, watch, body)) {
            Working::Waits(waits) if !span.is_disabled() => {
                Working::Waits(Box::pin(waits.instrument(span)))
            }
            working => working,
        }
    }
}

impl<T, E, C, P, M> Enter<Result<T, E>> for Typed<T, E, C, P, M>
where
    T: Send + 'static,
    E: Send + 'static,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    fn enter(self: Arc<Self>, call: Call, watch: Arc<Watch>) -> Boxed<Entered<Result<T, E>>> {
        Box::pin(async move {
            let (engine, call) = match self.open(call) {
                Opened::Ready(engine, call, _) => (engine, call),
                Opened::Unprotected => {
                    watch.unprotected();
                    return Entered::Unprotected;
                }
                Opened::Refused(error, record) => {
                    return Entered::Finished(self.refuse(error, record).counted(&watch));
                }
            };
            if let Some(finished) = self.at_hand(&engine, &call.flight, &watch) {
                return Entered::Finished(finished);
            }
            let prepared = Arc::new(call.prepare(&engine));
            let presence = Presence::new();
            let caller = Caller(Arc::clone(&presence));
            let id = prepared.id();
            let asking = Arc::clone(&self).ask(Arc::clone(&engine), prepared, presence);
            // If the caller is gone, nobody takes up what it wins, and dropping
            // that gives the reservation back.
            let spawned = engine.spawn(asking).await;
            drop(caller);
            let spawned = match spawned {
                Spawned::Done(Ok(attempt)) if engine.is_drained() => {
                    drop(attempt);
                    Spawned::Done(self.refuse(Error::ShuttingDown, Some(id)))
                }
                Spawned::Done(Ok(attempt)) => return Entered::Won(attempt),
                Spawned::Done(Err(finished)) => Spawned::Done(finished),
                Spawned::Panicked(panic) => Spawned::Panicked(panic),
                Spawned::Gone => Spawned::Gone,
            };
            Entered::Finished(self.finished(spawned, id).counted(&watch))
        })
    }

    fn settle(
        self: Arc<Self>,
        attempt: Attempt,
        ended: Result<Result<T, E>, Panic>,
        watch: Arc<Watch>,
    ) -> Boxed<Finished<Result<T, E>>> {
        let id = attempt.state.holder.id;
        let this = Arc::clone(&self);
        // Spawned now, not when polled: what has returned is always recorded.
        let engine = Arc::clone(&attempt.engine);
        let watched = Arc::clone(&watch);
        let work = engine
            .spawn(async move { Some(this.conclude(attempt, ended).await.counted(&watched)) });
        Box::pin(async move { self.finished(work.await, id).counted(&watch) })
    }
}

impl<T, E, C, P, M> EnterIn<Result<T, E>> for Typed<T, E, C, P, M>
where
    T: Send + 'static,
    E: Send + 'static,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    fn enter_in<'s>(
        self: Arc<Self>,
        call: Call,
        watch: Arc<Watch>,
        within: super::Within,
        session: crate::transaction::Session<'s>,
    ) -> OnSession<'s, Entered<Result<T, E>, TxAttempt>> {
        Box::pin(async move {
            let (engine, call) = match self.open(call) {
                Opened::Ready(engine, call, _) => (engine, call),
                Opened::Unprotected => {
                    watch.unprotected();
                    return Entered::Unprotected;
                }
                Opened::Refused(error, record) => {
                    return Entered::Finished(self.refuse(error, record).counted(&watch));
                }
            };
            let prepared = Arc::new(call.prepare(&engine));
            let refuse = |error| self.refuse(error, Some(prepared.id()));
            match super::within::enter(&engine, &prepared, within, session).await {
                Ok(attempt) => Entered::Won(attempt),
                Err(entry) => Entered::Finished(
                    self.answer(&prepared, entry)
                        .unwrap_or_else(|| refuse(Error::ShuttingDown))
                        .counted(&watch),
                ),
            }
        })
    }

    fn settle_in<'s>(
        self: Arc<Self>,
        attempt: TxAttempt,
        ended: Result<Result<T, E>, Panic>,
        watch: Arc<Watch>,
        session: crate::transaction::Session<'s>,
    ) -> OnSession<'s, Finished<Result<T, E>>> {
        Box::pin(async move {
            let finished = self.conclude_in(attempt, ended, session).await;
            finished.counted(&watch)
        })
    }
}

/// A call before anything is awaited.
enum Opened {
    Ready(Arc<Inner>, Identified, Option<Context>),
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
    /// Gives an answer that is at hand, inside of the call's span, or begins a
    /// task that asks for one. What is returned waits for that, and holds nothing
    /// of the call's arguments.
    fn detached_watched(
        self: Arc<Self>,
        call: Call,
        watch: Arc<Watch>,
        body: Boxed<Result<T, E>>,
    ) -> Working<Result<T, E>> {
        let (engine, call, parent) = match self.open(call) {
            Opened::Ready(engine, call, parent) => (engine, call, parent),
            Opened::Unprotected => {
                watch.unprotected();
                return Working::Waits(Box::pin(async {
                    let answer = context::unprotected(outcome::unobserved(body)).await;
                    Finished::unprotected(Ok(answer))
                }));
            }
            Opened::Refused(error, record) => {
                return Working::Done(self.refuse(error, record).counted(&watch));
            }
        };
        if let Some(finished) = self.at_hand(&engine, &call.flight, &watch) {
            return Working::Done(finished);
        }
        let prepared = Arc::new(call.prepare(&engine));
        let presence = Presence::new();
        let caller = Caller(Arc::clone(&presence));
        let id = prepared.id();
        let (this, asked) = (Arc::clone(&self), Arc::clone(&engine));
        let watched = Arc::clone(&watch);
        let work = async move {
            let asking = Arc::clone(&this).ask(asked, prepared, Arc::clone(&presence));
            let entered = asking.await?;
            let finished = match entered {
                // In both cases, dropping the attempt gives the reservation
                // back.
                Ok(_) if !presence.begin() => return None,
                Ok(attempt) if attempt.engine.is_drained() => {
                    this.refuse(Error::ShuttingDown, Some(id))
                }
                Ok(attempt) => {
                    let ended = run(&attempt, body, parent.as_ref()).await;
                    // In a box of its own: while the body runs, it is not there.
                    Box::pin(this.conclude(attempt, ended)).await
                }
                Err(finished) => finished,
            };
            Some(finished.counted(&watched))
        };
        let spawned = engine.spawn(work);
        Working::Waits(Box::pin(async move {
            let spawned = spawned.await;
            drop(caller);
            self.finished(spawned, id).counted(&watch)
        }))
    }

    /// Steps one: takes the key, or learns how the call ends without it. None
    /// if the caller has left.
    async fn ask(
        self: Arc<Self>,
        engine: Arc<Inner>,
        prepared: Arc<Prepared>,
        presence: Arc<Presence>,
    ) -> Option<Result<Attempt, Finished<Result<T, E>>>> {
        match enter(&engine, &prepared, &presence).await {
            Entry::Won(attempt) => {
                fault::point("before-body").await;
                Some(Ok(attempt))
            }
            entry => self.answer(&prepared, entry).map(Err),
        }
    }

    fn open(&self, call: Call) -> Opened {
        if call.is_unprotected() {
            return Opened::Unprotected;
        }
        let engine = match Engine::find(call.given_engine()) {
            Ok(engine) => engine.inner,
            Err(error) => return Opened::Refused(error, None),
        };
        let call = match call.identify(&engine, C::ID, TypeId::of::<Result<T, E>>()) {
            Ok(call) => call,
            Err(error) => return Opened::Refused(error, None),
        };
        let id = call.flight.id;
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
        Opened::Ready(engine, call, parent)
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
                counted: "panicked",
                ..Finished::new(Err(panic), Outcome::refused(Some(id)), Taint::Set(Some(id)))
            },
            Spawned::Gone => self.refuse(Error::ShuttingDown, Some(id)),
        }
    }

    pub(super) fn refuse(
        &self,
        error: Error,
        record: Option<crate::RecordId>,
    ) -> Finished<Result<T, E>> {
        let counted = crate::telemetry::refusal(&error);
        let taint = match &error {
            // Its own record answers later, and must not clear this.
            Error::Reentrant => Taint::Set(None),
            error if error.taints() => Taint::Set(record),
            _ => Taint::None,
        };
        Finished {
            counted,
            ..Finished::new(
                Ok(Err(self.map.map(error))),
                Outcome::refused(record),
                taint,
            )
        }
    }

    /// Gives what the store had, without polling the body. None if the caller
    /// has left.
    fn answer(&self, prepared: &Prepared, entry: Entry) -> Option<Finished<Result<T, E>>> {
        let id = prepared.id();
        match entry {
            Entry::Recorded { landed, how } => Some(self.replay(id, &landed, how)),
            Entry::Refused(error) => Some(self.refuse(error, Some(id))),
            Entry::Left | Entry::Won(_) => None,
        }
    }

    /// Gives an answer that is at hand: neither task nor reservation is needed.
    fn at_hand(
        &self,
        engine: &Inner,
        key: &FlightKey,
        watch: &Watch,
    ) -> Option<Finished<Result<T, E>>> {
        let finished = if let Some(cached) = engine.cached(key) {
            watch.hit();
            self.replay(key.id, &cached.landed, How::Replayed)
        } else {
            let landed = engine.find_at_hand(key)?;
            self.replay(key.id, &landed, How::Replayed)
        };
        Some(finished.counted(watch))
    }

    /// Step four: gives a recorded answer back.
    pub(super) fn replay(
        &self,
        id: crate::RecordId,
        landed: &Landed,
        how: How,
    ) -> Finished<Result<T, E>> {
        let reason = if landed.answer.codec == Self::codec(landed.answer.failed) {
            match C::decode(&landed.answer.bytes) {
                Ok(answer) => {
                    let outcome = Outcome::replayed(how, id, landed);
                    return Finished::new(Ok(self.restore(answer)), outcome, Taint::Clear(id));
                }
                Err(_) => TombstoneReason::NotDecodable,
            }
        } else {
            TombstoneReason::OtherCodec
        };
        self.refuse(Error::NotReplayable { reason }, Some(id))
    }

    /// The id under which an answer is stored.
    pub(super) fn codec(failed: bool) -> Cow<'static, str> {
        if failed && P::TEXT {
            Cow::Owned(format!("{}+text", C::ID))
        } else {
            Cow::Borrowed(C::ID)
        }
    }

    pub(super) fn restore(&self, answer: Result<T, P::Kept>) -> Result<T, E> {
        answer.map_err(|kept| P::restore(kept, &self.map))
    }
}
