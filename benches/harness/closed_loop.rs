//! Callers that each wait for their answer before they ask again.

use std::time::Duration;

use idem::{Clock as _, SystemClock};
use tokio::task::JoinSet;

use crate::BoxError;

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// A key that is new: reserve, and complete.
    First,
    /// A key whose answer is recorded.
    Replay,
}

impl Case {
    pub const ALL: [Self; 2] = [Self::First, Self::Replay];

    /// For programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Replay => "replay",
        }
    }
}

/// One way to do a call.
pub trait Side: Clone + Send + Sync + 'static {
    /// Calls a key that was never called.
    fn first(&self) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Calls one of the keys that are recorded.
    fn replay(&self) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// What one side did in one round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// Median time of a call, in microseconds.
    pub p50: f64,
    /// Calls a second, of all callers.
    pub per_second: f64,
}

/// Lets `callers` call for `length`, and waits for the calls that have begun by then.
///
/// # Errors
/// If a call fails.
pub async fn round<S: Side>(
    side: &S,
    case: Case,
    callers: usize,
    length: Duration,
) -> Result<Round, BoxError> {
    let clock = SystemClock;
    let begun = clock.monotonic();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let side = side.clone();
        tasks.spawn(async move {
            let mut took = Vec::new();
            loop {
                let before = clock.monotonic();
                if before - begun >= length {
                    return Ok::<_, BoxError>(took);
                }
                match case {
                    Case::First => side.first().await?,
                    Case::Replay => side.replay().await?,
                }
                took.push((clock.monotonic() - before).as_secs_f64() * 1e6);
            }
        });
    }
    let mut all = Vec::new();
    while let Some(took) = tasks.join_next().await {
        all.extend(took??);
    }
    let seconds = (clock.monotonic() - begun).as_secs_f64();
    if all.is_empty() {
        return Err("no call was made in a round".into());
    }
    all.sort_unstable_by(f64::total_cmp);
    Ok(Round {
        p50: all[all.len() / 2],
        per_second: all.len() as f64 / seconds,
    })
}

/// Rounds of two sides, the first of each pair alternating. One round of each goes before and is
/// not counted.
///
/// # Errors
/// If a call fails.
pub async fn pairs<R: Side, O: Side>(
    raw: &R,
    ours: &O,
    case: Case,
    callers: usize,
    rounds: usize,
    length: Duration,
) -> Result<Vec<(Round, Round)>, BoxError> {
    round(raw, case, callers, length).await?;
    round(ours, case, callers, length).await?;
    let mut pairs = Vec::with_capacity(rounds);
    for number in 0..rounds {
        let raw_first = number % 2 == 0;
        let before = if raw_first {
            Some(round(raw, case, callers, length).await?)
        } else {
            None
        };
        let own = round(ours, case, callers, length).await?;
        let raw = match before {
            Some(round) => round,
            None => round(raw, case, callers, length).await?,
        };
        pairs.push((raw, own));
    }
    Ok(pairs)
}
