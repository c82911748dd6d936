//! The way out: what the body's end means, and what is recorded of it.

use super::typed::Typed;
use super::{Finished, Taint};
use crate::answer::{ErrorMapping, ErrorPolicy, Keep};
use crate::codec::{Codec, Kept};
use crate::engine::attempt::{Attempt, AttemptState, Phase};
use crate::engine::conclude::{End, Told, tell};
use crate::engine::enter::read_recorded;
use crate::error::Error;
use crate::identity::RecordId;
use crate::outcome::Outcome;
use crate::panic::Panic;
use crate::policy::Disposition;
use crate::record::{Recorded, TombstoneReason, UnknownReason};
use crate::singleflight::Landed;
use crate::store::{Complete, Ending, Release};
use crate::sync::Arc;

impl<T, E, C, P, M> Typed<T, E, C, P, M>
where
    T: Send + 'static,
    E: Send + 'static,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    /// Step three: decides what the body's end means, and records it.
    pub(super) async fn conclude(
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
            Err(panic) if crate::engine::rehearsal::is_crash(&*panic) => {
                crate::engine::rehearsal::leave_behind(attempt);
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
                let outcome = Outcome::executed(&state, told == Told::Yes);
                let finished =
                    Finished::new(Err(panic), outcome, Taint::Set(Some(state.holder.id)));
                // The probe did, and the body did not run.
                return if probing {
                    finished.undecided()
                } else {
                    finished
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

    pub(super) fn sort(&self, state: &AttemptState, result: &Result<T, E>) -> Disposition {
        match result {
            Ok(answer) if state.is_tainted() && C::is_failure(answer) => Disposition::Unknown,
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
        // What came up inside of it comes up in its caller.
        let taint = if state.is_undecided() || state.is_tainted() {
            Taint::Set(Some(state.holder.id))
        } else {
            Taint::None
        };
        if state.is_undecided() {
            let outcome = Outcome::refused(Some(state.holder.id));
            return Finished::new(Ok(result), outcome, taint).undecided();
        }
        let outcome = Outcome::executed(&state, told == Told::Yes);
        Finished::new(Ok(result), outcome, taint)
    }

    /// Encodes what is to be recorded, and reads it back.
    pub(super) async fn keep(
        &self,
        id: &RecordId,
        result: Result<T, E>,
        limit: usize,
    ) -> ToRecord<T, E, P::Kept> {
        let failed = result.is_err();
        let (own, kept) = self.encode(result, limit).await;
        let (copy, ending) = match kept {
            Kept::Bytes(bytes) => match C::decode(&bytes) {
                Ok(copy) => {
                    let answer = Recorded::new(id, &Self::codec(failed), failed, bytes);
                    (Some(copy), Ending::Answer(answer))
                }
                Err(_) => (None, Ending::Tombstone(TombstoneReason::NotDecodable)),
            },
            Kept::Nothing(reason) => (None, Ending::Tombstone(reason)),
        };
        ToRecord { own, copy, ending }
    }

    /// Makes of it what the first caller gets.
    pub(super) fn give(&self, recorded: ToRecord<T, E, P::Kept>) -> Result<T, E> {
        match (recorded.own, recorded.copy) {
            // The first caller's own error, where only its text was kept.
            (Own::Error(error), _) => Err(error),
            (_, Some(copy)) => self.restore(copy),
            (Own::Answer(answer), None) => self.restore(answer),
        }
    }

    /// Records an answer, and gives the copy that every replay will equal.
    async fn record(&self, attempt: Attempt, result: Result<T, E>) -> Finished<Result<T, E>> {
        let state = Arc::clone(&attempt.state);
        let engine = Arc::clone(&attempt.engine);
        let id = state.holder.id;
        let kept = self.keep(&id, result, engine.limits.answer_limit).await;
        let end = End::Complete(Complete {
            holder: state.holder,
            ending: kept.ending.clone(),
            ttl_us: state.prepared.ttl_us,
        });
        let asked = engine.asking(&state.prepared.flight);
        let (told, lead) = tell(attempt, end).await;
        if told == Told::Superseded {
            drop(lead);
            return match read_recorded(&engine, &state.prepared).await {
                Some((landed, how)) => self.replay(id, &landed, how),
                None => self.refuse(Error::Superseded, Some(id)),
            };
        }
        if let (Told::Yes, Ending::Answer(answer)) = (told, &kept.ending)
            && (lead.is_some() || asked.is_some())
        {
            let landed = Arc::new(Landed {
                answer: answer.clone(),
                finished_us: engine.clock.unix_us(),
                attempt: state.won.attempt,
            });
            let prepared = &state.prepared;
            engine.keep(asked, &prepared.flight, &landed, prepared.ttl_us);
            if let Some(lead) = lead {
                lead.land(&landed);
            }
        }
        let outcome = Outcome::executed(&state, told == Told::Yes);
        Finished::new(Ok(self.give(kept)), outcome, Taint::Clear(id))
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

/// An answer that is to be recorded.
pub(super) struct ToRecord<T, E, K> {
    own: Own<T, E, K>,
    /// What replays will give.
    copy: Option<Result<T, K>>,
    pub(super) ending: Ending,
}

/// What the body itself returned.
enum Own<T, E, K> {
    Answer(Result<T, K>),
    Error(E),
}
