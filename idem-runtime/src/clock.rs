//! The only place that asks for the time.
//!
//! Two clocks matter. A *store's* clock decides leases and TTLs; every process
//! that shares the store sees the same one. The *engine's* clock is this
//! process's monotonic time: it tells a holder when it must stop believing in
//! its own lease. Neither is ever compared with the other.

use std::fmt::Debug;
use std::time::Duration;

/// A source of time that tests can replace.
pub trait Clock: Debug + Send + Sync + 'static {
    /// Returns microseconds since the Unix epoch.
    fn unix_us(&self) -> i64;

    /// Returns time that never steps back, from an arbitrary start.
    fn monotonic(&self) -> Duration;
}

/// The operating system's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn unix_us(&self) -> i64 {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        micros(since)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn monotonic(&self) -> Duration {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed()
    }
}

/// Converts to whole microseconds, rounding up so that nothing becomes zero,
/// and saturating.
pub(crate) fn micros(duration: Duration) -> i64 {
    // Not by `as_nanos`, whose 128 bits are slow to divide.
    let seconds = duration.as_secs().saturating_mul(1_000_000);
    let rest = u64::from(duration.subsec_nanos().div_ceil(1_000));
    i64::try_from(seconds.saturating_add(rest)).unwrap_or(i64::MAX)
}

/// Converts microseconds, negative ones counting as none.
pub(crate) fn from_micros(us: i64) -> Duration {
    Duration::from_micros(u64::try_from(us).unwrap_or(0))
}

/// A clock that moves only when told to.
///
/// Clones share the same time. It starts at 2026-01-01T00:00:00Z.
///
/// ```
/// use idem::testing::ManualClock;
/// use idem::Clock;
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let before = clock.unix_us();
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(clock.unix_us() - before, 1_000_000);
/// ```
#[cfg(feature = "testing")]
#[derive(Debug, Clone)]
pub struct ManualClock(std::sync::Arc<std::sync::atomic::AtomicI64>);

#[cfg(feature = "testing")]
impl ManualClock {
    const START_US: i64 = 1_767_225_600_000_000;

    /// Creates a clock that stands still.
    #[must_use]
    pub fn new() -> Self {
        Self(std::sync::Arc::new(std::sync::atomic::AtomicI64::new(
            Self::START_US,
        )))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.step(micros(by));
    }

    /// Moves the clock by microseconds, also backwards, as a host's clock may.
    pub fn step(&self, by_us: i64) {
        self.0.fetch_add(by_us, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(feature = "testing")]
impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(feature = "testing")]
impl Clock for ManualClock {
    fn unix_us(&self) -> i64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        from_micros(self.unix_us() - Self::START_US)
    }
}
