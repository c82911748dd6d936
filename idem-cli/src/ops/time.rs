//! Times as people read them: how long ago, and exactly.

use jiff::Timestamp;

/// A time of the store's clock, to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    /// `14 min ago`, `in 12 s`.
    pub(super) relative: String,
    /// `14 min`: how far it is from now, in either direction.
    pub(super) distance: String,
    /// `2026-12-01 03:14:15 UTC`
    pub(super) exact: String,
    /// `2026-12-01T03:14:15.926535Z`
    pub(super) iso: String,
}

impl Moment {
    pub(super) fn new(at_us: i64, now_us: i64) -> Self {
        let distance = span(at_us.abs_diff(now_us));
        let at = Timestamp::from_microsecond(at_us).unwrap_or(if at_us < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        });
        Self {
            relative: if at_us > now_us {
                format!("in {distance}")
            } else {
                format!("{distance} ago")
            },
            distance,
            exact: at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
            iso: at.to_string(),
        }
    }

    pub(super) fn optional(at_us: Option<i64>, now_us: i64) -> Option<Self> {
        at_us.map(|at_us| Self::new(at_us, now_us))
    }
}

/// Writes a length of time in its two largest units, in one piece: no line
/// breaks between number and unit.
pub(super) fn span(us: u64) -> String {
    words(us).replace(' ', "\u{a0}")
}

fn words(us: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let seconds = us / 1_000_000;
    if seconds == 0 {
        return "under 1 s".to_owned();
    }
    let first = UNITS
        .iter()
        .position(|(length, _)| seconds >= *length)
        .unwrap_or(UNITS.len() - 1);
    let (length, unit) = UNITS[first];
    let rest = UNITS
        .get(first + 1)
        .map(|(shorter, unit)| (seconds % length / shorter, unit));
    match rest {
        // Beyond ten minutes nobody counts seconds.
        Some((count, smaller)) if count > 0 && !(unit == "min" && seconds >= 600) => {
            format!("{} {unit} {count} {smaller}", seconds / length)
        }
        _ => format!("{} {unit}", seconds / length),
    }
}

/// The minute of the day, as an axis shows it: `03:14`.
pub(super) fn minute(at_us: i64) -> String {
    Timestamp::from_microsecond(at_us)
        .map(|at| at.strftime("%H:%M").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_its_two_largest_units() {
        for (seconds, text) in [
            (1, "1 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (601, "10 min"),
            (3_600, "1 h"),
            (3_661, "1 h 1 min"),
            (86_400, "1 d"),
            (90_000, "1 d 1 h"),
            (8_640_000, "100 d"),
        ] {
            assert_eq!(words(seconds * 1_000_000), text);
        }
        assert_eq!(words(999_999), "under 1 s");
        assert!(words(u64::MAX).ends_with(" h"));
        assert_eq!(span(61_000_000), "1\u{a0}min\u{a0}1\u{a0}s");
    }

    #[test]
    fn a_moment_is_shown_from_now_and_exactly() {
        let now = 1_767_225_600_000_000;
        let past = Moment::new(now - 90_000_000, now);
        assert_eq!(past.relative, "1\u{a0}min\u{a0}30\u{a0}s ago");
        assert_eq!(past.exact, "2025-12-31 23:58:30 UTC");
        assert_eq!(past.iso, "2025-12-31T23:58:30Z");
        assert_eq!(Moment::new(now + 1_000_000, now).relative, "in 1\u{a0}s");
        assert_eq!(minute(now), "00:00");
        // A row may have any number.
        assert!(Moment::new(i64::MAX, now).relative.starts_with("in "));
        assert!(Moment::new(i64::MIN, now).relative.ends_with(" ago"));
    }
}
