//! The way out: what the body's end means, and what is recorded of it in the
//! caller's transaction.

use super::TxAttempt;
use crate::answer::{ErrorMapping, ErrorPolicy};
use crate::codec::Codec;
use crate::engine::attempt::Phase;
use crate::engine::driver::typed::Typed;
use crate::engine::driver::{Finished, Taint};
use crate::error::Error;
use crate::outcome::Outcome;
use crate::panic::Panic;
use crate::policy::Disposition;
use crate::store::Complete;
use crate::transaction::Session;

impl<T, E, C, P, M> Typed<T, E, C, P, M>
where
    T: Send + 'static,
    E: Send + 'static,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    /// Decides what the body's end means, and records an answer.
    pub(in crate::engine::driver) async fn conclude_in(
        &self,
        attempt: TxAttempt,
        ended: Result<Result<T, E>, Panic>,
        mut session: Session<'_>,
    ) -> Finished<Result<T, E>> {
        let state = &attempt.state;
        state.enter(Phase::Returned);
        let disposition = match &ended {
            Ok(result) => self.sort(state, result),
            Err(_) => Disposition::Unknown,
        };
        match (disposition, ended) {
            (Disposition::Store, Ok(result)) => self.record_in(&attempt, result, session).await,
            // Nothing is recorded: the reservation stays unfinished until the
            // caller rolls back, or goes with the savepoint.
            (_, ended) => {
                let panicked = ended.is_err();
                if let Err(error) = attempt.undo(&mut session).await {
                    crate::telemetry::not_recorded(state, "savepoint", &error);
                }
                let taint = if panicked || state.is_tainted() {
                    Taint::Set(Some(state.holder.id))
                } else {
                    Taint::None
                };
                Finished::new(ended, Outcome::executed(state, false), taint)
            }
        }
    }

    async fn record_in(
        &self,
        attempt: &TxAttempt,
        result: Result<T, E>,
        mut session: Session<'_>,
    ) -> Finished<Result<T, E>> {
        let (engine, state) = (&attempt.engine, &attempt.state);
        let id = state.holder.id;
        let kept = self.keep(&id, result, engine.limits.answer_limit).await;
        let request = Complete {
            holder: state.holder,
            ending: kept.ending.clone(),
            ttl_us: state.prepared.ttl_us,
        };
        if let Err(error) = attempt.complete(&mut session, &request).await {
            crate::telemetry::not_recorded(state, "complete", &error);
            // Best effort: the caller is told to roll back.
            attempt.undo(&mut session).await.ok();
            return self.refuse(Error::NotRecorded(error), Some(id));
        }
        crate::telemetry::ended(state, &crate::engine::conclude::End::Complete(request));
        let outcome = Outcome::executed(state, true);
        Finished::new(Ok(self.give(kept)), outcome, Taint::Clear(id))
    }
}
