//! Lengths of time on the command line: `90s`, `1h30m`, `7d`.

use std::time::Duration;

use idem::Ttl;

/// Units from large to small, in milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("w", 604_800_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

const FORM: &str =
    "write whole numbers with the units w, d, h, m, s or ms, from large to small, such as 1h30m";

/// Reads a length of time.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let mut rest = text.trim();
    let mut units = UNITS.as_slice();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(FORM.to_owned());
    }
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        let (unit, after) = split(after, |c| c.is_ascii_alphabetic());
        let at = units.iter().position(|(name, _)| *name == unit);
        let (Ok(number), Some(at)) = (number.parse::<u64>(), at) else {
            return Err(FORM.to_owned());
        };
        total = number
            .checked_mul(units[at].1)
            .and_then(|part| total.checked_add(part))
            .ok_or("longer than can be counted")?;
        units = &units[at + 1..];
        rest = after;
    }
    Ok(Duration::from_millis(total))
}

/// Reads how long a record is kept.
pub(crate) fn parse_ttl(text: &str) -> Result<Ttl, String> {
    if text.trim() == "forever" {
        return Ok(Ttl::Forever);
    }
    match parse(text) {
        Ok(Duration::ZERO) => Err("must be longer than zero".to_owned()),
        Ok(duration) => Ok(Ttl::For(duration)),
        Err(form) => Err(format!("{form}, or forever")),
    }
}

fn split(text: &str, inside: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !inside(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_go_from_large_to_small() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            (" 2w ", 1_209_600_000),
            ("1m1s1ms", 61_001),
        ] {
            assert_eq!(
                parse(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for text in [
            "",
            "5",
            "s",
            "5 s",
            "1.5h",
            "30m1h",
            "1h1h",
            "-5s",
            "5S",
            "9999999999999999999w",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(matches!(parse_ttl("forever"), Ok(Ttl::Forever)));
        assert!(parse_ttl("0s").is_err());
    }
}
