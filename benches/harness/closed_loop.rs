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

/// The times of calls, and how long all of them took together.
#[derive(Default)]
struct Timed {
    microseconds: Vec<f64>,
    seconds: f64,
}

impl Timed {
    fn add(&mut self, mut more: Self) {
        self.microseconds.append(&mut more.microseconds);
        self.seconds += more.seconds;
    }

    fn round(mut self) -> Result<Round, BoxError> {
        if self.microseconds.is_empty() {
            return Err("no call was made in a round".into());
        }
        self.microseconds.sort_unstable_by(f64::total_cmp);
        Ok(Round {
            p50: self.microseconds[self.microseconds.len() / 2],
            per_second: self.microseconds.len() as f64 / self.seconds,
        })
    }
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
    time(side, case, callers, length).await?.round()
}

async fn time<S: Side>(
    side: &S,
    case: Case,
    callers: usize,
    length: Duration,
) -> Result<Timed, BoxError> {
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
    let mut timed = Timed::default();
    while let Some(took) = tasks.join_next().await {
        timed.microseconds.extend(took??);
    }
    timed.seconds = (clock.monotonic() - begun).as_secs_f64();
    Ok(timed)
}

/// Rounds of two sides. In each they take turns; who goes first alternates too. With one caller a
/// round has ten turns of each: a commit takes one of two times, for as long as somebody else wants
/// the core, and a turn that is as long as that would compare the two times. One round goes before
/// and is not counted.
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
    let turns = if callers == 1 { 10 } else { 1 };
    let length = length / turns;
    let mut pairs = Vec::with_capacity(rounds);
    for number in 0..=rounds {
        let (mut raw_timed, mut ours_timed) = (Timed::default(), Timed::default());
        for turn in 0..turns as usize {
            if (number + turn).is_multiple_of(2) {
                raw_timed.add(time(raw, case, callers, length).await?);
                ours_timed.add(time(ours, case, callers, length).await?);
            } else {
                ours_timed.add(time(ours, case, callers, length).await?);
                raw_timed.add(time(raw, case, callers, length).await?);
            }
        }
        if number > 0 {
            pairs.push((raw_timed.round()?, ours_timed.round()?));
        }
    }
    Ok(pairs)
}
