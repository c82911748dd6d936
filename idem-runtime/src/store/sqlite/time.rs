//! The store's time: the host's clock, never behind what was given out before.

use rusqlite::{Connection, OptionalExtension as _};

use super::statements;
use crate::clock::Clock;
use crate::sync::{Arc, AtomicI64, Ordering};

/// How far the stored time may be behind: one row is written per second, not
/// one per commit.
const STORED_EVERY_US: i64 = 1_000_000;

#[derive(Debug, Clone)]
pub(super) struct StoreTime {
    clock: Arc<dyn Clock>,
    latest_us: Arc<AtomicI64>,
}

impl StoreTime {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            latest_us: Arc::new(AtomicI64::new(i64::MIN)),
        }
    }

    /// Returns the host's clock as it is.
    pub(super) fn host_us(&self) -> i64 {
        self.clock.unix_us()
    }

    /// Returns the time, not before `stored_us` nor any earlier answer.
    pub(super) fn at_least(&self, stored_us: i64) -> i64 {
        let now_us = self.clock.unix_us().max(stored_us);
        self.latest_us
            .fetch_max(now_us, Ordering::SeqCst)
            .max(now_us)
    }

    /// Returns the time, not before what is stored.
    pub(super) fn stored(&self, conn: &Connection) -> rusqlite::Result<i64> {
        Ok(self.at_least(clock(conn)?.unwrap_or(i64::MIN)))
    }

    /// Returns the time for a transaction's decisions and stores it if due.
    pub(super) fn in_transaction(&self, conn: &Connection) -> rusqlite::Result<i64> {
        let stored = clock(conn)?;
        let now_us = self.at_least(stored.unwrap_or(i64::MIN));
        if stored.is_some_and(|stored| now_us.saturating_sub(stored) > STORED_EVERY_US) {
            conn.prepare_cached(statements::ADVANCE_CLOCK)?
                .execute([now_us])?;
        }
        Ok(now_us)
    }
}

/// Returns the time that is stored, once an engine has been pinned.
pub(super) fn clock(conn: &Connection) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached(statements::CLOCK)?
        .query_row((), |row| row.get(0))
        .optional()
}
