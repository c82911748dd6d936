//! What stands, rather than what happened; and what the metrics mean.

#[cfg(feature = "metrics")]
use super::names;
use crate::store::Counts;

/// Tells a recorder what each metric means.
pub(crate) fn describe() {
    #[cfg(feature = "metrics")]
    for metric in names::METRICS {
        let unit = match metric.unit {
            names::Unit::Count => metrics::Unit::Count,
            names::Unit::Seconds => metrics::Unit::Seconds,
        };
        match metric.kind {
            names::Kind::Counter => metrics::describe_counter!(metric.name, unit, metric.meaning),
            names::Kind::Gauge => metrics::describe_gauge!(metric.name, unit, metric.meaning),
            names::Kind::Histogram => {
                metrics::describe_histogram!(metric.name, unit, metric.meaning);
            }
        }
    }
}

/// Begins the counters of rare events at zero, with the first engine: a rate sees
/// no first event in a series that begins with it.
pub(crate) fn begin() {
    #[cfg(feature = "metrics")]
    {
        metrics::counter!(names::RENEWAL_FAILURES).increment(0);
        metrics::counter!(names::SWEPT).increment(0);
        for step in names::STEPS {
            for kind in ["permanent", "misconfigured"] {
                let counter =
                    metrics::counter!(names::STORE_ERRORS, "step" => *step, "kind" => kind);
                counter.increment(0);
            }
        }
    }
}

/// The same for those of an operation, with its first call.
pub(crate) fn begin_operation(operation: &str) {
    #[cfg(feature = "metrics")]
    {
        let operation = std::sync::Arc::<str>::from(operation);
        let of = || std::sync::Arc::clone(&operation);
        for rare in [
            names::TAKEOVERS,
            names::LEASES_LOST,
            names::OVERDUE,
            names::BACKGROUND,
        ] {
            metrics::counter!(rare, "operation" => of()).increment(0);
        }
        for end in ["unknown", "superseded", "not_recorded"] {
            metrics::counter!(names::ATTEMPTS, "operation" => of(), "end" => end).increment(0);
        }
        metrics::counter!(names::CALLS, "operation" => of(), "outcome" => "unknown").increment(0);
    }
    #[cfg(not(feature = "metrics"))]
    let _ = operation;
}

/// A piece of work begins or ends. All engines of a process add to one gauge.
pub(crate) fn moved(gauge: &'static str, up: bool) {
    #[cfg(feature = "metrics")]
    if up {
        metrics::gauge!(gauge).increment(1.0);
    } else {
        metrics::gauge!(gauge).decrement(1.0);
    }
    #[cfg(not(feature = "metrics"))]
    let _ = (gauge, up);
}

/// What an operator's count of the store said.
pub(crate) fn counts(counts: &Counts) {
    #[cfg(feature = "metrics")]
    {
        let age = |since: Option<i64>| {
            let since = since.map_or(0, |since| counts.now_us.saturating_sub(since));
            crate::clock::from_micros(since).as_secs_f64()
        };
        let number = |count: u64| u32::try_from(count).map_or(f64::from(u32::MAX), f64::from);
        metrics::gauge!(names::UNKNOWN).set(number(counts.unknown));
        metrics::gauge!(names::UNKNOWN_AGE).set(age(counts.oldest_unknown_us));
        metrics::gauge!(names::IN_PROGRESS).set(number(counts.in_progress));
        metrics::gauge!(names::LAPSED).set(number(counts.lapsed));
        metrics::gauge!(names::IN_PROGRESS_AGE).set(age(counts.oldest_started_us));
    }
    #[cfg(not(feature = "metrics"))]
    let _ = counts;
}
