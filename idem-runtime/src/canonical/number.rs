//! Numbers: integers with all their digits, floats as ECMAScript writes them.

use super::error::Failure;

const NOT_FINITE: &str = "NaN and infinities have no canonical form";
const TOO_LONG: &str = "an integer of more than 128 bits";
pub(crate) const NOT_A_NUMBER: &str = "a `serde_json::Number` whose text is no number";

/// The largest power of ten in a `u64`.
const CHUNK: u128 = 10_000_000_000_000_000_000;
/// As many digits as are made in one step.
const EIGHT: u64 = 100_000_000;
const ZEROS: u64 = u64::MAX / 0xff * 0x30;

#[inline]
pub(crate) fn write_u64(out: &mut Vec<u8>, value: u64) {
    if value < EIGHT {
        let digits = digits(value);
        // The last one always stands.
        let absent = digits.trailing_zeros().min(56) / 8;
        write_word(out, (digits | ZEROS) >> (8 * absent), 8 - absent);
    } else {
        write_u64_long(out, value);
    }
}

fn write_u64_long(out: &mut Vec<u8>, value: u64) {
    write_u64(out, value / EIGHT);
    write_word(out, digits(value % EIGHT) | ZEROS, 8);
}

/// Writes the first bytes of `word` in one step: a copy of a length that is
/// only known at run time takes several.
#[inline]
fn write_word(out: &mut Vec<u8>, word: u64, length: u32) {
    let absent = 8 - usize::try_from(length).unwrap_or(8);
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(out.len() - absent);
}

/// The eight digits of a number that has no more, the first one the lowest
/// byte. All pairs, then all digits, are divided at once, by multiplication.
#[inline]
fn digits(value: u64) -> u64 {
    let fours = (value / 10_000) | (value % 10_000) << 32;
    let hundreds = ((fours * 5_243) >> 19) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
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
    // The remainder is below 10^19: three digits, and twice eight.
    let rest = u64::try_from(value % CHUNK).unwrap_or(0);
    let [first, second] = [rest / EIGHT / EIGHT, rest / EIGHT % EIGHT];
    write_word(out, (digits(first) | ZEROS) >> (8 * 5), 3);
    write_word(out, digits(second) | ZEROS, 8);
    write_word(out, digits(rest % EIGHT) | ZEROS, 8);
}

pub(crate) fn write_i128(out: &mut Vec<u8>, value: i128) {
    if value < 0 {
        out.push(b'-');
    }
    write_u128(out, value.unsigned_abs());
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
    fn every_number_of_few_digits_is_written_as_it_is() {
        let mut out = Vec::new();
        // All of four digits, in both halves, with and without what is before.
        for value in 0..10_000 {
            for value in [
                value,
                value * 10_000 + 1,
                (value << 32) + value,
                value * EIGHT,
            ] {
                out.clear();
                write_u64(&mut out, value);
                assert_eq!(out, value.to_string().as_bytes());
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_number_is_written_as_it_is(value: u128, bits in 0..128_u32) {
            let value = value >> bits;
            assert_eq!(written(|out| write_u128(out, value)), value.to_string());
            if let Ok(value) = u64::try_from(value) {
                assert_eq!(written(|out| write_u64(out, value)), value.to_string());
            }
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
