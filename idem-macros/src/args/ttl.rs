//! The grammar of durations: `"24h"`, `"1h30m"`, `"500ms"`.
//!
//! Numbers with a unit, from large units to small ones, each at most once. The
//! text is checked while compiling, so a slip never reaches production.

use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Token};

/// The value of `ttl`.
#[derive(Debug, Clone)]
pub(crate) enum TtlArg {
    Micros(u64),
    Forever,
    Expr(Expr),
}

/// Units from large to small, with their length in microseconds.
const UNITS: &[(&str, u64)] = &[
    ("w", 7 * 24 * 3_600_000_000),
    ("d", 24 * 3_600_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
];

/// Longer names of the units, which people write first.
const ALIASES: &[(&str, &str)] = &[
    ("week", "w"),
    ("day", "d"),
    ("hour", "h"),
    ("hr", "h"),
    ("minute", "m"),
    ("min", "m"),
    ("second", "s"),
    ("sec", "s"),
    ("millisecond", "ms"),
    ("milli", "ms"),
    ("msec", "ms"),
];

/// Stored times are signed 64-bit microseconds.
const LONGEST_US: u64 = i64::MAX.unsigned_abs();

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    Empty,
    Forever,
    NoNumber(String),
    NoUnit(String),
    UnknownUnit(String),
    Fraction,
    Order,
    Zero,
    TooLong,
}

impl Problem {
    /// The message for a text that stands in `place`, such as `ttl` or `wait`.
    pub(crate) fn message(&self, place: &str) -> String {
        let units = "`ms`, `s`, `m`, `h`, `d` or `w`";
        match self {
            Self::Empty => {
                format!("`{place}` is empty: write a number and a unit, such as \"30s\"")
            }
            Self::Forever => format!("write `{place} = forever`, without quotes"),
            Self::NoNumber(rest) => format!(
                "`{place}` expects a number before {rest:?}: write a number and a unit, such as \"30s\""
            ),
            Self::NoUnit(number) => format!(
                "`{place}` needs a unit: write \"{number}s\" for seconds; the units are {units}"
            ),
            Self::UnknownUnit(unit) => match known_unit(unit) {
                Some(meant) => format!("unknown unit `{unit}` in `{place}`: write `{meant}`"),
                None => format!("unknown unit `{unit}` in `{place}`: the units are {units}"),
            },
            Self::Fraction => {
                format!("`{place}` takes whole numbers: write \"1h30m\" instead of \"1.5h\"")
            }
            Self::Order => format!(
                "the units of `{place}` go from large to small, each once, such as \"1h30m\""
            ),
            Self::Zero => format!("`{place}` must be longer than zero"),
            Self::TooLong => {
                format!("`{place}` is longer than can be counted (about 290000 years)")
            }
        }
    }
}

fn known_unit(unit: &str) -> Option<&'static str> {
    let lower = unit.to_lowercase();
    let singular = lower.strip_suffix('s').unwrap_or(&lower);
    let alias = ALIASES
        .iter()
        .find(|(alias, _)| *alias == lower || *alias == singular);
    let same = UNITS.iter().find(|(name, _)| *name == lower);
    alias.map(|(_, unit)| *unit).or(same.map(|(unit, _)| *unit))
}

/// Reads a duration, in microseconds.
pub(crate) fn micros(text: &str) -> Result<u64, Problem> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(Problem::Empty);
    }
    if rest == "forever" {
        return Err(Problem::Forever);
    }
    let mut total = 0_u64;
    let mut units = UNITS;
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit());
        if number.is_empty() {
            return Err(Problem::NoNumber(rest.to_owned()));
        }
        if after.starts_with(['.', ',']) {
            return Err(Problem::Fraction);
        }
        let (unit, after) = split(after.trim_start(), |c| {
            !c.is_ascii_digit() && !c.is_whitespace()
        });
        if unit.is_empty() {
            return Err(Problem::NoUnit(number.to_owned()));
        }
        let Some((_, length)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(Problem::UnknownUnit(unit.to_owned()));
        };
        let Some(position) = units.iter().position(|(name, _)| *name == unit) else {
            return Err(Problem::Order);
        };
        units = &units[position + 1..];
        let number: u64 = number.parse().map_err(|_| Problem::TooLong)?;
        total = number
            .checked_mul(*length)
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= LONGEST_US)
            .ok_or(Problem::TooLong)?;
        rest = after.trim_start();
    }
    if total == 0 {
        Err(Problem::Zero)
    } else {
        Ok(total)
    }
}

fn split(text: &str, inside: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !inside(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// Parses the text of `lease`, `max_run` and `wait(..)`.
pub(crate) fn parse_text(place: &str, input: ParseStream<'_>) -> syn::Result<u64> {
    if !input.peek(LitStr) {
        let message = format!("`{place}` takes a text with a unit, such as \"30s\"");
        return Err(Error::new(input.span(), message));
    }
    let text: LitStr = input.parse()?;
    micros(&text.value()).map_err(|problem| Error::new(text.span(), problem.message(place)))
}

/// Parses the value of `ttl`: a text, `forever`, or a `Duration` expression.
pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<TtlArg> {
    if input.peek(LitStr) && (input.peek2(Token![,]) || input.peek2(syn::parse::End)) {
        return parse_text("ttl", input).map(TtlArg::Micros);
    }
    let expr: Expr = input.parse()?;
    match &expr {
        Expr::Path(path) if path.path.is_ident("forever") => Ok(TtlArg::Forever),
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => Err(Error::new(
            number.span(),
            Problem::NoUnit(number.base10_digits().to_owned()).message("ttl"),
        )),
        Expr::Lit(ExprLit { lit, .. }) => Err(Error::new(
            lit.span(),
            "`ttl` takes a text with a unit (`ttl = \"24h\"`), a `Duration` expression, or `forever`",
        )),
        _ => Ok(TtlArg::Expr(expr)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Problem, micros};

    const S: u64 = 1_000_000;

    #[test]
    fn every_unit_counts() {
        for (text, expected) in [
            ("1ms", 1_000),
            ("30s", 30 * S),
            ("15m", 900 * S),
            ("24h", 86_400 * S),
            ("7d", 604_800 * S),
            ("2w", 1_209_600 * S),
            ("1h30m", 5_400 * S),
            ("1w2d3h4m5s6ms", 788_645 * S + 6_000),
            (" 1h 30m ", 5_400 * S),
        ] {
            assert_eq!(micros(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn every_slip_has_its_own_problem() {
        let own = |text: &str| text.to_owned();
        for (text, expected) in [
            ("", Problem::Empty),
            ("   ", Problem::Empty),
            ("forever", Problem::Forever),
            ("24", Problem::NoUnit(own("24"))),
            ("1h30", Problem::NoUnit(own("30"))),
            ("h", Problem::NoNumber(own("h"))),
            ("-5s", Problem::NoNumber(own("-5s"))),
            ("24hours", Problem::UnknownUnit(own("hours"))),
            ("5µs", Problem::UnknownUnit(own("µs"))),
            ("1.5h", Problem::Fraction),
            ("30m1h", Problem::Order),
            ("1h1h", Problem::Order),
            ("0s", Problem::Zero),
            ("0h0m", Problem::Zero),
            ("99999999999999999999s", Problem::TooLong),
            ("15250285w", Problem::TooLong),
        ] {
            assert_eq!(micros(text), Err(expected), "{text}");
        }
        assert!(micros("15250284w").is_ok(), "the longest whole week fits");
    }

    #[test]
    fn long_names_of_units_get_the_short_one() {
        for (text, unit) in [
            ("24hours", "`h`"),
            ("5Min", "`m`"),
            ("3 days", "`d`"),
            ("5H", "`h`"),
        ] {
            let message = micros(text).map_err(|problem| problem.message("ttl"));
            let message = message.expect_err(text);
            assert!(message.ends_with(unit), "{message}");
        }
    }
}
