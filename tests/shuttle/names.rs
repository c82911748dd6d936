//! What the sources of the library name of its other parts.

pub(crate) mod backoff {
    pub(crate) fn jittered(number: u32) -> std::time::Duration {
        std::time::Duration::from_millis(number.into())
    }
}

pub(crate) mod clock {
    use std::time::Duration;

    pub(crate) use idem::Clock;

    pub(crate) fn micros(duration: Duration) -> i64 {
        i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
    }

    pub(crate) fn from_micros(us: i64) -> Duration {
        Duration::from_micros(u64::try_from(us).unwrap_or(0))
    }
}

pub(crate) mod error {
    pub(crate) use idem::{Error, StoreError, StoreErrorKind};
}

pub(crate) mod telemetry {
    pub(crate) use idem::telemetry::names::StoreStep;

    use crate::engine::attempt::AttemptState;

    pub(crate) fn unknown(_: &AttemptState, _: idem::UnknownReason) {}
    pub(crate) fn lease_lost(_: &AttemptState) {}
    pub(crate) fn max_run_over(_: &AttemptState) {}
    pub(crate) fn renewal_failed(_: usize, _: &idem::StoreError) {}
    pub(crate) fn moved(_: &'static str, _: bool) {}
    pub(crate) fn given_back(_: &AttemptState) {}
    pub(crate) fn renewal_lag(_: std::time::Duration) {}
    pub(crate) fn store_call<T>(
        _: StoreStep,
        _: std::time::Duration,
        _: &Result<T, idem::StoreError>,
    ) {
    }
}

pub(crate) mod policy {
    pub(crate) use idem::OnUnknown;
}

pub(crate) use idem::{identity, record, store};
