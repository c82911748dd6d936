//! Times as people and programs read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time in the local zone, to the second.
pub(crate) fn local(us: i64) -> String {
    match Timestamp::from_microsecond(us) {
        Ok(time) => time
            .to_zoned_datetime(TimeZone::system())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        Err(_) => format!("{us} us"),
    }
}

/// A time in UTC, after RFC 3339, to the microsecond.
pub(crate) fn rfc_3339(us: i64) -> String {
    Timestamp::from_microsecond(us).map_or_else(|_| format!("{us} us"), |time| time.to_string())
}

/// How long ago `us` was at `now_us`, or how far ahead it is.
pub(crate) fn age(us: i64, now_us: i64) -> String {
    let ago = now_us.saturating_sub(us);
    if ago < 0 {
        format!("in {}", length(ago.saturating_neg()))
    } else {
        format!("{} ago", length(ago))
    }
}

/// A time in the local zone, and how long ago that was.
pub(crate) fn with_age(us: i64, now_us: i64) -> String {
    format!("{} ({})", local(us), age(us, now_us))
}

/// A length of time in its largest unit.
pub(crate) fn length(us: i64) -> String {
    let seconds = us / 1_000_000;
    let (count, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..172_800 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{count} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_by_people_and_programs() {
        const SECOND: i64 = 1_000_000;
        assert_eq!(
            rfc_3339(1_767_225_600_000_001),
            "2026-01-01T00:00:00.000001Z"
        );
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (7_199, "1 h"),
            (172_800, "2 d"),
        ] {
            assert_eq!(length(seconds * SECOND), expected);
        }
        assert_eq!(age(0, 90 * SECOND), "1 min ago");
        assert_eq!(age(90 * SECOND, 0), "in 1 min");
        assert_eq!(local(i64::MAX), format!("{} us", i64::MAX));
    }
}
