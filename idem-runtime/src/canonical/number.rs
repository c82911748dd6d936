//! Numbers: integers with all their digits, floats as ECMAScript writes them.

use super::error::Failure;

const NOT_FINITE: &str = "NaN and infinities have no canonical form";
const TOO_LONG: &str = "an integer of more than 128 bits";
pub(crate) const NOT_A_NUMBER: &str = "a `serde_json::Number` whose text is no number";

/// 2^64 has twenty digits.
const DIGITS: usize = 20;
/// The largest power of ten in a `u64`, and its exponent.
const CHUNK: u128 = 10_000_000_000_000_000_000;
const CHUNK_DIGITS: usize = 19;

#[inline]
pub(crate) fn write_u64(out: &mut Vec<u8>, value: u64) {
    let mut text = [b'0'; DIGITS];
    let start = fill(&mut text, value);
    out.extend_from_slice(&text[start..]);
}

#[inline]
pub(crate) fn write_i64(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    write_u64(out, value.unsigned_abs());
}

pub(crate) fn write_u128(out: &mut Vec<u8>, value: u128) {
    if let Ok(small) = u64::try_from(value) {
        return write_u64(out, small);
    }
    write_u128(out, value / CHUNK);
    let mut text = [b'0'; DIGITS];
    // The remainder is below 10^19, so it fits.
    fill(&mut text, u64::try_from(value % CHUNK).unwrap_or(0));
    out.extend_from_slice(&text[DIGITS - CHUNK_DIGITS..]);
}

pub(crate) fn write_i128(out: &mut Vec<u8>, value: i128) {
    if value < 0 {
        out.push(b'-');
    }
    write_u128(out, value.unsigned_abs());
}

/// Writes the digits at the end of `text`, and returns where they begin.
fn fill(text: &mut [u8; DIGITS], mut value: u64) -> usize {
    let mut at = DIGITS;
    loop {
        at -= 1;
        text[at] = b'0' + u8::try_from(value % 10).unwrap_or(0);
        value /= 10;
        if value == 0 {
            return at;
        }
    }
}

#[inline]
pub(crate) fn write_f64(out: &mut Vec<u8>, value: f64) -> Result<(), Failure> {
    if !value.is_finite() {
        return Err(Failure::new(NOT_FINITE));
    }
    let mut buffer = ryu_js::Buffer::new();
    out.extend_from_slice(buffer.format_finite(value).as_bytes());
    Ok(())
}

/// Writes a number that `serde_json` kept as text (its feature
/// `arbitrary_precision`) as the same number would be written without it.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) -> Result<(), Failure> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let value = text
            .parse::<f64>()
            .map_err(|_| Failure::new(NOT_A_NUMBER))?;
        return write_f64(out, value);
    }
    if let Ok(value) = text.parse::<u128>() {
        write_u128(out, value);
    } else {
        let value = text.parse::<i128>().map_err(|_| Failure::new(TOO_LONG))?;
        write_i128(out, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_have_all_their_digits() {
        for value in [0, 9, 10, 99, 100, 1 << 53, u64::MAX / 10, u64::MAX] {
            assert_eq!(written(|out| write_u64(out, value)), value.to_string());
        }
        for value in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(written(|out| write_i64(out, value)), value.to_string());
        }
        let big = [0, CHUNK - 1, CHUNK, CHUNK * CHUNK, 1 << 100, u128::MAX];
        for value in big {
            assert_eq!(written(|out| write_u128(out, value)), value.to_string());
        }
        for value in [i128::MIN, -1, 0, i128::MAX] {
            assert_eq!(written(|out| write_i128(out, value)), value.to_string());
        }
    }

    #[test]
    fn numbers_kept_as_text_are_written_like_numbers() {
        let text = |text: &str| {
            let mut out = Vec::new();
            write_text(&mut out, text).map_err(|failure| failure.reason())?;
            Ok(String::from_utf8(out).unwrap())
        };
        assert_eq!(text("9007199254740993"), Ok("9007199254740993".into()));
        assert_eq!(text(&i128::MIN.to_string()), Ok(i128::MIN.to_string()));
        assert_eq!(text("-0"), Ok("0".into()));
        assert_eq!(text("-0.0"), Ok("0".into()));
        assert_eq!(text("1.50"), Ok("1.5".into()));
        assert_eq!(text("1E3"), Ok("1000".into()));
        assert_eq!(text("1e999"), Err(NOT_FINITE));
        assert_eq!(text("inf"), Err(NOT_FINITE));
        assert_eq!(text(&"9".repeat(40)), Err(TOO_LONG));
        assert_eq!(text("-"), Err(NOT_A_NUMBER));
        assert_eq!(text(""), Err(NOT_A_NUMBER));
    }
}
