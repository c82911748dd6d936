//! Steps two to three: the body has ended, and the store is told how.

use std::time::Duration;

use super::Inner;
use super::attempt::{Attempt, Phase};
use crate::backoff;
use crate::error::{StoreError, StoreErrorKind};
use crate::fault;
use crate::store::{Complete, MarkUnknown, Release, Written};
use crate::sync::Arc;
use crate::telemetry::{self, StoreStep};

/// What to tell the store about an attempt.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Complete(Complete),
    Release(Release),
    Unknown(MarkUnknown),
}

/// Whether the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It has.
    Yes,
    /// Another attempt took over, or the record is gone.
    Superseded,
    /// It may or may not have: the attempt goes on telling it in the
    /// background, while its lease is renewed.
    Unconfirmed,
}

impl End {
    fn step(&self) -> &'static str {
        match self {
            Self::Complete(_) => "complete",
            Self::Release(_) => "release",
            Self::Unknown(_) => "unknown",
        }
    }

    async fn send(&self, engine: &Inner) -> Result<Written, StoreError> {
        let limit = engine.limits.store_timeout;
        let store = &engine.store;
        match self {
            Self::Complete(request) => {
                engine
                    .store_call(StoreStep::Complete, limit, store.complete(request))
                    .await
            }
            Self::Release(request) => {
                engine
                    .store_call(StoreStep::Release, limit, store.release(request))
                    .await
            }
            Self::Unknown(request) => {
                engine
                    .store_call(StoreStep::Unknown, limit, store.mark_unknown(request))
                    .await
            }
        }
    }
}

/// Tells the store how an attempt ended, and ends it. Whoever waits for it in
/// this process goes on when the returned lead is landed or dropped.
///
/// If the store does not answer, the attempt stays alive in a task of its own
/// that tries again with growing pauses for as long as the process lives.
pub(crate) async fn tell(attempt: Attempt, end: End) -> (Told, Option<crate::singleflight::Lead>) {
    attempt.state.enter(Phase::Returned);
    attempt.state.renew_until_recorded();
    // Again, for a body that ran longer than it was renewed.
    attempt.engine.renewals.hold(&attempt.state);
    fault::point("before-complete").await;
    let engine = Arc::clone(&attempt.engine);
    let deadline = tokio::time::Instant::now() + engine.limits.store_timeout;
    for number in 1.. {
        match end.send(&engine).await {
            Ok(written) => {
                fault::point("after-complete").await;
                return told(attempt, &end, written);
            }
            Err(error) if error.kind() == StoreErrorKind::Transient => {
                let pause = backoff::jittered(number);
                if tokio::time::Instant::now() + pause >= deadline {
                    break;
                }
                tokio::time::sleep(pause).await;
            }
            // A password that was changed, a grant, a table: somebody may put it
            // right while this process still has the answer.
            Err(error) if error.kind() == StoreErrorKind::Misconfigured => break,
            Err(error) => {
                // Trying again will not help: the lease lapses, and the record
                // says truthfully that the outcome is unknown.
                telemetry::never_told(&attempt.state, end.step(), &error);
                return (Told::Unconfirmed, attempt.end());
            }
        }
    }
    telemetry::background(&attempt.state, end.step());
    let task = keep_telling(attempt, end);
    if let Some(runtime) = engine.runtime() {
        runtime.spawn(task);
    }
    (Told::Unconfirmed, None)
}

async fn keep_telling(attempt: Attempt, end: End) {
    let engine = Arc::clone(&attempt.engine);
    for number in 5.. {
        tokio::time::sleep(backoff::jittered(number)).await;
        match end.send(&engine).await {
            Ok(written) => {
                told(attempt, &end, written);
                return;
            }
            Err(error) if error.kind() != StoreErrorKind::Permanent => {}
            Err(error) => {
                telemetry::never_told(&attempt.state, end.step(), &error);
                attempt.end();
                return;
            }
        }
    }
}

fn told(
    attempt: Attempt,
    end: &End,
    written: Written,
) -> (Told, Option<crate::singleflight::Lead>) {
    if written.is_done() {
        telemetry::ended(&attempt.state, end);
        return (Told::Yes, attempt.end());
    }
    telemetry::superseded(&attempt.state, end.step());
    (Told::Superseded, attempt.end())
}

/// Runs `future` for at most `limit`; not answering is a transient error that
/// leaves open whether the store did it.
pub(crate) async fn bounded<T>(
    limit: Duration,
    future: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(limit, future).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::new(
            StoreErrorKind::Transient,
            "the store did not answer in time",
        )
        .ambiguous()),
    }
}
