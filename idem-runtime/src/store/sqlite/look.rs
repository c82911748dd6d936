//! Reservations that change nothing: a replay, a running attempt.

use std::time::Duration;

use rusqlite::Connection;

use super::connection::BUSY;
use super::error::store_error;
use super::jobs::{Done, Op};
use super::time::StoreTime;
use super::{SqliteStore, gone, rows};
use crate::clock::{Clock, SystemClock, micros};
use crate::error::StoreError;
use crate::identity::{Fingerprint, RecordId};
use crate::store::{Reserve, Reserved};
use crate::sync::{AtomicI64, Ordering};
use crate::transition;

/// What a look takes whose pages are in memory is a hundredth of this.
const SLOW: Duration = Duration::from_millis(1);
/// How long looks go to the threads after a slow one.
const REST: Duration = Duration::from_secs(1);

/// Whether looks are quick enough to be made where the caller is polled.
///
/// A row that was read lately takes a few microseconds, less than to wake
/// another thread. One on a slow disk must not hold up a runtime again and again.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// On the monotonic clock that measures.
    rests_until_us: AtomicI64,
}

impl Pace {
    /// Measures what is done here and now; none without doing it while looks are
    /// slow.
    fn measure<T>(&self, clock: &impl Clock, look: impl FnOnce() -> Option<T>) -> Option<T> {
        let started = clock.monotonic();
        if micros(started) < self.rests_until_us.load(Ordering::Relaxed) {
            return None;
        }
        let looked = look();
        let ended = clock.monotonic();
        if ended.saturating_sub(started) > SLOW {
            self.rests_until_us
                .store(micros(ended + REST), Ordering::Relaxed);
        }
        looked
    }
}

impl SqliteStore {
    /// Finds a finished record here and now.
    pub(super) fn find_at_once(
        &self,
        id: &RecordId,
        fingerprint: &Fingerprint,
    ) -> Option<Reserved> {
        self.at_once(|conn| {
            let record = rows::find(conn, id).ok()?.ok()??;
            transition::at_hand(&record, fingerprint, self.0.time.at_least(i64::MIN))
        })
    }

    /// Reserves, without the write lock if nothing changes.
    pub(super) async fn look_and_reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        let looked = match self.at_once(|conn| look(conn, &self.0.time, request).ok()) {
            Some(looked) => looked,
            None => self.look(request).await?,
        };
        if let Some(reserved) = looked {
            return Ok(reserved);
        }
        match self.0.jobs.ask(Op::Reserve(request.clone())).await? {
            Done::Reserved(reserved) => Ok(reserved),
            _ => Err(gone()),
        }
    }

    /// Looks here and now, if that is quick and waits for nobody. An error is
    /// left to those who can wait.
    fn at_once<T>(&self, look: impl FnOnce(&Connection) -> Option<T>) -> Option<T> {
        self.0.pace.measure(&SystemClock, || {
            self.0.readers.at_once(|conn| {
                conn.busy_timeout(Duration::ZERO).ok()?;
                let looked = look(conn);
                conn.busy_timeout(BUSY).ok()?;
                looked
            })
        })
    }

    async fn look(&self, request: &Reserve) -> Result<Option<Reserved>, StoreError> {
        let (request, time) = (request.clone(), self.0.time.clone());
        let looking = self.0.readers.run(move |conn| look(conn, &time, &request));
        looking.await
    }
}

/// Answers a reservation that changes nothing; none if it needs a transaction.
fn look(
    conn: &Connection,
    time: &StoreTime,
    request: &Reserve,
) -> Result<Option<Reserved>, StoreError> {
    let found = rows::find(conn, &request.id).map_err(|error| store_error(&error))?;
    let Some(record) = found? else {
        return Ok(None);
    };
    // Not the stored time: a clock that stepped back makes this say "recorded"
    // or "running" a little longer, which runs nothing. Whatever needs a write
    // is decided again in a transaction.
    let now_us = time.at_least(i64::MIN);
    let decision = transition::reserve(Some(&record), request, now_us);
    Ok(decision.write.is_none().then_some(decision.reply))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::from_micros;

    /// A monotonic clock that stands still unless it is moved.
    #[derive(Debug, Default)]
    struct ByHand(AtomicI64);

    impl ByHand {
        fn advance(&self, by: Duration) {
            self.0.fetch_add(micros(by), Ordering::Relaxed);
        }
    }

    impl Clock for ByHand {
        fn monotonic(&self) -> Duration {
            from_micros(self.0.load(Ordering::Relaxed))
        }

        fn unix_us(&self) -> i64 {
            0
        }
    }

    #[test]
    fn after_a_slow_look_the_threads_look() {
        let (pace, clock) = (Pace::default(), ByHand::default());
        let look = |takes| {
            pace.measure(&clock, || {
                clock.advance(takes);
                Some(())
            })
        };
        let instant = Duration::from_micros(1);
        assert_eq!(look(SLOW), Some(()));
        assert_eq!(look(instant), Some(()), "it was not slow");
        assert_eq!(look(SLOW + instant), Some(()));
        assert_eq!(look(instant), None);
        clock.advance(REST - instant);
        assert_eq!(look(instant), None);
        clock.advance(instant);
        assert_eq!(look(instant), Some(()));
    }
}
