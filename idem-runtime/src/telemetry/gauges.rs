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
