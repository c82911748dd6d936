//! A call that waits for another attempt.

use std::borrow::Cow;
use std::time::Duration;

use super::Inner;
use super::tracker::Tracked;
use crate::sync::Arc;
use crate::telemetry;

/// One of an engine's waiting calls, until dropped; then its wait is measured.
#[derive(Debug)]
pub(crate) struct Waiting {
    engine: Arc<Inner>,
    operation: Cow<'static, str>,
    since: Duration,
    _tracked: Tracked,
}

impl Waiting {
    /// Lets a call wait, unless there are too many that do.
    pub(crate) fn admit(engine: &Arc<Inner>, operation: Cow<'static, str>) -> Option<Self> {
        let tracked = engine.waiters.track_below(engine.limits.max_waiters)?;
        Some(Self {
            engine: Arc::clone(engine),
            operation,
            since: engine.clock.monotonic(),
            _tracked: tracked,
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let time = self.engine.clock.monotonic().saturating_sub(self.since);
        telemetry::waited(std::mem::take(&mut self.operation), time);
    }
}
