//! Every metric, what it is labelled with, and what it means.
//!
//! `docs/metrics.md` says what to do when one moves. What the dashboard and the
//! alerts name is checked against [`METRICS`].

/// Counter by `operation` and `outcome`: calls. Each is counted once.
pub const CALLS: &str = "idem_calls_total";
/// Counter by `operation`: replays of what was in this process's memory.
pub const CACHE_HITS: &str = "idem_cache_hits_total";
/// Counter by `operation`: reservations that were won.
pub const RESERVATIONS: &str = "idem_reservations_total";
/// Counter by `operation`: lapsed or unknown attempts that were taken over.
pub const TAKEOVERS: &str = "idem_takeovers_total";
/// Counter by `operation` and `end`: how attempts ended.
pub const ATTEMPTS: &str = "idem_attempts_total";
/// Histogram by `operation`: seconds that calls waited for another attempt.
pub const WAIT_SECONDS: &str = "idem_wait_seconds";
/// Gauge: attempts that hold a key.
pub const HELD: &str = "idem_attempts_held";
/// Gauge: calls that wait for another attempt.
pub const WAITING: &str = "idem_calls_waiting";
/// Counter by `operation`: leases that were lost while the body ran.
pub const LEASES_LOST: &str = "idem_leases_lost_total";
/// Counter by `operation`: bodies that ran longer than `max_run`.
pub const OVERDUE: &str = "idem_overdue_total";
/// Counter: renewals that the store did not answer.
pub const RENEWAL_FAILURES: &str = "idem_renewal_failures_total";
/// Histogram: seconds by which a renewal came later than it was planned.
pub const RENEWAL_LAG: &str = "idem_renewal_lag_seconds";
/// Counter by `operation`: ends of attempts told in the background.
pub const BACKGROUND: &str = "idem_background_completes_total";
/// Counter: rows that sweep deleted.
pub const SWEPT: &str = "idem_swept_total";
/// Counter by `step` and `kind`: store calls that failed.
pub const STORE_ERRORS: &str = "idem_store_errors_total";
/// Histogram by `step`: seconds of a store call.
pub const STORE_SECONDS: &str = "idem_store_seconds";
/// Gauge: records in the store whose outcome is unknown.
pub const UNKNOWN: &str = "idem_unknown";
/// Gauge: seconds since the oldest unknown outcome is in doubt.
pub const UNKNOWN_AGE: &str = "idem_unknown_oldest_seconds";
/// Gauge: records in the store whose attempt is within lease and grace.
pub const IN_PROGRESS: &str = "idem_in_progress";
/// Gauge: records in the store whose attempt is past lease and grace.
pub const LAPSED: &str = "idem_lapsed";
/// Gauge: seconds since the oldest attempt, lapsed or not, was reserved.
pub const IN_PROGRESS_AGE: &str = "idem_in_progress_oldest_seconds";

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It has a distribution.
    Histogram,
}

/// What a metric counts or measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Pieces.
    Count,
    /// Seconds.
    Seconds,
}

/// A metric of this library.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// In what it is given.
    pub unit: Unit,
    /// The names of its labels: some of [`LABELS`].
    pub labels: &'static [&'static str],
    /// What it means, in a line: its description where metrics are shown.
    pub meaning: &'static str,
}

/// A label of this library's metrics.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// Its values; none if they are names of operations, of which there are as
    /// many as annotated functions, plain calls, layers and inboxes have names.
    pub values: Option<&'static [&'static str]>,
}

/// Every label.
pub const LABELS: &[Label] = &[
    Label {
        name: "operation",
        values: None,
    },
    Label {
        name: "outcome",
        values: Some(OUTCOMES),
    },
    Label {
        name: "end",
        values: Some(ENDS),
    },
    Label {
        name: "step",
        values: Some(STEPS),
    },
    Label {
        name: "kind",
        values: Some(&["transient", "permanent", "misconfigured"]),
    },
];

/// How a call got its answer, or why it got none.
pub const OUTCOMES: &[&str] = &[
    "executed",
    "replayed",
    "coalesced",
    "recovered",
    "stale",
    "unprotected",
    "in_progress",
    "mismatch",
    "unknown",
    "undecided",
    "tombstone",
    "superseded",
    "invalid_key",
    "fingerprint",
    "reentrant",
    "no_engine",
    "misuse",
    "shutting_down",
    "store",
    "not_recorded",
    "panicked",
    "left",
];

/// How an attempt ended.
pub const ENDS: &[&str] = &[
    "completed",
    "tombstone",
    "released",
    "unknown",
    "undecided",
    "given_back",
    "superseded",
    "not_recorded",
];

macro_rules! steps {
    ($($(#[$doc:meta])* $step:ident = $name:literal,)*) => {
        /// What a store is asked for: the label `step`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum StoreStep {
            $($(#[$doc])* $step,)*
        }

        impl StoreStep {
            /// Returns the label's value.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$step => $name,)*
                }
            }
        }

        /// The values of the label `step`.
        pub const STEPS: &[&str] = &[$($name,)*];
    };
}

steps! {
    /// Take a key, or learn what stands there.
    Reserve = "reserve",
    /// Record an answer.
    Complete = "complete",
    /// Say that nothing happened.
    Release = "release",
    /// Say that the outcome is in doubt.
    Unknown = "unknown",
    /// Undo a reservation whose body never began.
    GiveBack = "give_back",
    /// Extend leases.
    Renew = "renew",
    /// Keep or read a step of a body.
    Step = "step",
    /// Delete a batch of expired rows.
    Sweep = "sweep",
    /// Count records.
    Count = "count",
    /// Read a page of records.
    List = "list",
    /// Read one record.
    Look = "look",
    /// Change a record by hand, or as a probe found.
    Settle = "settle",
    /// Read what was changed so.
    Audit = "audit",
    /// Read where many records stand.
    Standings = "standings",
}

const fn metric(
    name: &'static str,
    kind: Kind,
    unit: Unit,
    labels: &'static [&'static str],
    meaning: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        unit,
        labels,
        meaning,
    }
}

/// Every metric.
pub const METRICS: &[Metric] = &{
    use Kind::{Counter, Gauge, Histogram};
    use Unit::{Count, Seconds};
    const BY_OPERATION: &[&str] = &["operation"];
    [
        metric(
            CALLS,
            Counter,
            Count,
            &["operation", "outcome"],
            "calls, each counted once, by how it got its answer or why it got none",
        ),
        metric(
            CACHE_HITS,
            Counter,
            Count,
            BY_OPERATION,
            "replays that asked no store, since their answer was in this process's cache",
        ),
        metric(
            RESERVATIONS,
            Counter,
            Count,
            BY_OPERATION,
            "reservations that were won: attempts that began",
        ),
        metric(
            TAKEOVERS,
            Counter,
            Count,
            BY_OPERATION,
            "reservations that took over a lapsed or unknown attempt",
        ),
        metric(
            ATTEMPTS,
            Counter,
            Count,
            &["operation", "end"],
            "attempts that ended, by how",
        ),
        metric(
            WAIT_SECONDS,
            Histogram,
            Seconds,
            BY_OPERATION,
            "how long calls waited that waited for another attempt",
        ),
        metric(HELD, Gauge, Count, &[], "attempts that hold a key"),
        metric(
            WAITING,
            Gauge,
            Count,
            &[],
            "calls that wait for another attempt",
        ),
        metric(
            LEASES_LOST,
            Counter,
            Count,
            BY_OPERATION,
            "leases that were lost while the body ran",
        ),
        metric(
            OVERDUE,
            Counter,
            Count,
            BY_OPERATION,
            "bodies that ran longer than `max_run`, so that their lease is not renewed any more",
        ),
        metric(
            RENEWAL_FAILURES,
            Counter,
            Count,
            &[],
            "renewals that the store did not answer",
        ),
        metric(
            RENEWAL_LAG,
            Histogram,
            Seconds,
            &[],
            "how much later than planned a renewal was sent",
        ),
        metric(
            BACKGROUND,
            Counter,
            Count,
            BY_OPERATION,
            "ends of attempts that the store did not confirm at once, told in the background",
        ),
        metric(
            SWEPT,
            Counter,
            Count,
            &[],
            "expired rows that sweep deleted",
        ),
        metric(
            STORE_ERRORS,
            Counter,
            Count,
            &["step", "kind"],
            "store calls that failed",
        ),
        metric(
            STORE_SECONDS,
            Histogram,
            Seconds,
            &["step"],
            "how long store calls took, failed ones included",
        ),
        metric(
            UNKNOWN,
            Gauge,
            Count,
            &[],
            "records whose outcome is unknown, in the whole store",
        ),
        metric(
            UNKNOWN_AGE,
            Gauge,
            Seconds,
            &[],
            "since when the oldest unknown outcome is in doubt; 0 if there is none",
        ),
        metric(
            IN_PROGRESS,
            Gauge,
            Count,
            &[],
            "attempts within lease and grace, in the whole store",
        ),
        metric(
            LAPSED,
            Gauge,
            Count,
            &[],
            "attempts past lease and grace, in the whole store",
        ),
        metric(
            IN_PROGRESS_AGE,
            Gauge,
            Seconds,
            &[],
            "age of the oldest attempt, lapsed or not; 0 if there is none",
        ),
    ]
};
