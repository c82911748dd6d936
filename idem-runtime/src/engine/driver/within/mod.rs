//! A call inside of its caller's transaction: no lease, no renewal, no flight.
//!
//! The reservation and the answer are statements on the caller's connection.
//! Between them the body runs in place, on the same connection.

mod permit;
mod settle;

use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use self::permit::tx_enter;
pub use self::permit::{TxEnded, TxPermit, TxRun, tx_reserve};
use crate::backoff;
use crate::engine::attempt::AttemptState;
use crate::engine::call::Prepared;
use crate::engine::enter::{Entry, answered, retry_after};
use crate::engine::tracker::Tracked;
use crate::engine::waiting::Waiting;
use crate::engine::{Inner, MAX_RETRY_AFTER};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::fault;
use crate::policy::{OnInProgress, OnUnknown};
use crate::record::Claim;
use crate::store::{Complete, Entrance, Holder, Reserve, Reserved, Transactional};
use crate::sync::Arc;
use crate::telemetry::{self, StoreStep};
use crate::transaction::{Savepoint, Session};

/// A future that uses the caller's connection.
pub(super) type OnSession<'s, T> = Pin<Box<dyn Future<Output = T> + Send + 's>>;

/// How much of the caller's transaction an `Err` of the body undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// `tx = conn`: nothing. The caller rolls it back.
    Transaction,
    /// `tx = savepoint(conn)`: the reservation and the body.
    Savepoint,
}

/// One try at running the body in its caller's transaction.
#[derive(Debug)]
pub(crate) struct TxAttempt {
    pub(crate) engine: Arc<Inner>,
    pub(crate) state: Arc<AttemptState>,
    pub(crate) savepoint: Option<Savepoint>,
    _tracked: Tracked,
}

impl TxAttempt {
    /// Undoes reservation and body, if there is a savepoint.
    pub(super) async fn undo(&self, session: &mut Session<'_>) -> Result<(), StoreError> {
        match &self.savepoint {
            Some(savepoint) => session.undo(savepoint).await,
            None => Ok(()),
        }
    }

    /// Writes the answer.
    pub(super) async fn complete(
        &self,
        session: &mut Session<'_>,
        request: &Complete,
    ) -> Result<(), StoreError> {
        fault::point("before-complete").await;
        let store = transactional(&self.engine)?;
        let call = store.complete_in(session.reborrow(), request);
        let written = self
            .engine
            .store_call(StoreStep::Complete, UNBOUNDED, call)
            .await?;
        if !written.is_done() {
            return Err(StoreError::new(
                StoreErrorKind::Transient,
                "the reservation is not in the transaction any more, which was ended or rolled back while the body ran",
            ));
        }
        if let Some(savepoint) = &self.savepoint {
            session.keep(savepoint).await?;
        }
        fault::point("after-complete").await;
        Ok(())
    }
}

/// How long a statement on the caller's connection may take is the caller's to
/// say, by the settings of its session.
const UNBOUNDED: Duration = Duration::MAX;

fn transactional(engine: &Inner) -> Result<&dyn Transactional, StoreError> {
    engine.store.transactional().ok_or_else(|| {
        StoreError::new(
            StoreErrorKind::Misconfigured,
            format!(
                "the engine's store, `{}`, keeps no records in a transaction of its caller's: `tx` needs a store in the same SQLite, Postgres or MySQL database",
                engine.store.kind()
            ),
        )
    })
}

/// Takes the key in the caller's transaction, or learns why not. What is not won
/// leaves nothing behind.
pub(super) async fn enter(
    engine: &Arc<Inner>,
    prepared: &Arc<Prepared>,
    within: Within,
    mut session: Session<'_>,
) -> Result<TxAttempt, Entry> {
    let refused = |error| Entry::Refused(error);
    if prepared.on_unknown != OnUnknown::Refuse {
        return Err(refused(Error::misuse(
            "`on_unknown` has no meaning in the caller's transaction, which never takes an attempt over: leave it out",
        )));
    }
    if !session.is_in_transaction() {
        return Err(refused(Error::misuse(
            "the connection behind `tx` is in no transaction: call `begin()` on it, not a statement of your own, and pass what it returns",
        )));
    }
    let store = transactional(engine).map_err(|error| refused(error.into()))?;
    let savepoint = match within {
        Within::Transaction => None,
        Within::Savepoint => Some(
            session
                .set_savepoint()
                .await
                .map_err(|error| refused(error.into()))?,
        ),
    };
    let reserved = reserve(engine, prepared, store, &mut session).await;
    if let Ok((holder, won)) = &reserved
        && !engine.is_drained()
    {
        telemetry::won(prepared.operation.clone(), prepared.id(), won);
        fault::point("after-reserve").await;
        return Ok(TxAttempt {
            engine: Arc::clone(engine),
            state: Arc::new(AttemptState::in_transaction(
                engine,
                prepared,
                *holder,
                won.clone(),
            )),
            savepoint,
            _tracked: engine.attempts.track(),
        });
    }
    if let Some(savepoint) = savepoint {
        // A connection on which this fails, fails its caller's next statement.
        session.undo(&savepoint).await.ok();
    }
    Err(reserved.map_or_else(|entry| entry, |_| refused(Error::ShuttingDown)))
}

/// Asks until there is an answer, or the wait is over.
async fn reserve(
    engine: &Arc<Inner>,
    prepared: &Prepared,
    store: &dyn Transactional,
    session: &mut Session<'_>,
) -> Result<(Holder, crate::store::Won), Entry> {
    let failed = |error: StoreError| Entry::Refused(error.into());
    let request = Reserve {
        claim: Claim::random().map_err(failed)?,
        ..prepared.reserve.clone()
    };
    let deadline = match prepared.on_in_progress {
        OnInProgress::Wait(bound) => Instant::now().checked_add(bound),
        OnInProgress::Reject => Some(Instant::now()),
    };
    let mut waiting = None;
    for number in 1.. {
        fault::point("before-reserve").await;
        let call = store.reserve_in(session.reborrow(), &engine.instance, &request);
        let entrance = engine.store_call(StoreStep::Reserve, UNBOUNDED, call).await;
        let again_after = match entrance.map_err(failed)? {
            Entrance::Answered(Reserved::Won(won)) => {
                let holder = Holder {
                    id: request.id,
                    claim: request.claim,
                    fence: won.fence,
                };
                return Ok((holder, won));
            }
            Entrance::Answered(Reserved::InProgress { left_us }) => retry_after(left_us),
            Entrance::Answered(other) => return Err(answered(prepared, other, None)),
            Entrance::Held { waited: false } => MAX_RETRY_AFTER,
            Entrance::Held { waited: true } => break,
        };
        waiting = waiting.or_else(|| Waiting::admit(engine, prepared.operation.clone()));
        let over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over || waiting.is_none() {
            return Err(Entry::Refused(Error::InProgress {
                retry_after: again_after,
            }));
        }
        let pause = Instant::now() + std::cmp::min(backoff::jittered(number), again_after);
        tokio::time::sleep_until(deadline.map_or(pause, |deadline| deadline.min(pause))).await;
    }
    Err(Entry::Refused(Error::InProgress {
        retry_after: MAX_RETRY_AFTER,
    }))
}
