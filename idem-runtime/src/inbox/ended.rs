//! How a handler ended, as the body of a call.

use std::fmt::Display;
use std::marker::PhantomData;
use std::time::Duration;

use crate::answer::{ErrorMapping, ErrorPolicy, Keep, Text};
use crate::context::context;
use crate::delivery::Delivery;
use crate::error::Error;
use crate::policy::Disposition;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The most deliveries that run a handler.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cap(Option<u32>);

impl Cap {
    pub(super) const NONE: Self = Self(None);

    pub(super) const fn of(attempts: u32) -> Self {
        Self(Some(attempts))
    }

    #[cfg_attr(
        not(feature = "tx"),
        expect(dead_code, reason = "asked in a transaction")
    )]
    pub(super) const fn is_set(self) -> bool {
        self.0.is_some()
    }

    pub(super) fn is_over(self, deliveries: u32) -> bool {
        self.0.is_some_and(|most| deliveries > most)
    }
}

/// Why a delivery gave no answer.
pub(super) enum Ended<E> {
    /// The handler ran and returned this.
    Failed {
        error: E,
        disposition: Disposition,
        deliveries: u32,
    },
    /// The handler did not run: this is one delivery too many.
    OverLimit { deliveries: u32 },
    /// An earlier handler's error, of which the text is kept.
    Recorded(String),
    /// The engine has no answer.
    Refused(Error),
}

/// Runs the handler unless this is one delivery too many. `known` is the broker's
/// number of it.
pub(super) async fn handle<T, E, P, F>(
    cap: Cap,
    known: Option<u32>,
    policy: P,
    handler: F,
) -> Result<T, Ended<E>>
where
    P: ErrorPolicy<E>,
    F: Future<Output = Result<T, E>>,
{
    let attempt = context().map_err(Ended::Refused)?.attempt();
    let deliveries = known.unwrap_or(attempt);
    if cap.is_over(deliveries) {
        return Err(Ended::OverLimit { deliveries });
    }
    handler.await.map_err(|error| Ended::Failed {
        disposition: policy.sort(&error),
        error,
        deliveries,
    })
}

/// When a message whose handler did nothing is delivered again.
pub(super) fn again(deliveries: u32) -> Delivery {
    let doublings = deliveries.saturating_sub(1).min(6);
    Delivery::Retry {
        after: (FIRST_PAUSE * (1 << doublings)).min(LONGEST_PAUSE),
    }
}

/// The policy of calls whose bodies end so. `P` has sorted the error.
pub(super) struct Sorted<P>(PhantomData<fn() -> P>);

impl<P> Sorted<P> {
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<E, P> ErrorPolicy<Ended<E>> for Sorted<P>
where
    E: Display + Send + 'static,
    P: ErrorPolicy<E>,
{
    type Kept = Text;
    const DECIDES: bool = P::DECIDES;
    const TEXT: bool = true;

    fn sort(&self, ended: &Ended<E>) -> Disposition {
        match ended {
            Ended::Failed { disposition, .. } => *disposition,
            // Nothing has happened: a later delivery may have another limit.
            Ended::OverLimit { .. } => Disposition::Release,
            Ended::Recorded(_) | Ended::Refused(_) => Disposition::Unknown,
        }
    }

    fn keep(&self, ended: Ended<E>) -> Keep<Ended<E>, Text> {
        match &ended {
            Ended::Failed { error, .. } => Keep::Part(Text::of(error), ended),
            _ => Keep::Nothing(ended),
        }
    }

    fn restore<M: ErrorMapping<Ended<E>>>(kept: Text, _: &M) -> Ended<E> {
        Ended::Recorded(kept.into_string())
    }
}

/// What the engine has to say is kept apart from what a handler returns, so that
/// its error type need not carry it.
#[derive(Clone, Copy)]
pub(super) struct Apart;

impl<E> ErrorMapping<Ended<E>> for Apart {
    fn map(&self, error: Error) -> Ended<E> {
        Ended::Refused(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_a_minute() {
        let seconds = |deliveries| match again(deliveries) {
            Delivery::Retry { after } => after.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            [0, 1, 2, 3, 6, 7, 8, u32::MAX].map(seconds),
            [1, 1, 2, 4, 32, 60, 60, 60]
        );
    }
}
