//! Strings: quoted, and escaped as RFC 8785 section 3.2.2.2 wants it.

use std::fmt::{self, Write as _};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// What follows the backslash of a byte; 0 if it is written as it is.
const ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        table[control] = b'u';
        control += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

/// Writes `text`, which is UTF-8, with its quotes.
#[inline]
pub(crate) fn write(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    if needs_escapes(text) {
        write_escaped(out, text);
    } else {
        out.extend_from_slice(text);
    }
    out.push(b'"');
}

/// Writes what `value` displays, with quotes, without a `String` in between.
/// Says whether it is blank.
pub(crate) fn write_display<T>(out: &mut Vec<u8>, value: &T) -> Result<bool, fmt::Error>
where
    T: fmt::Display + ?Sized,
{
    struct Escaping<'a> {
        out: &'a mut Vec<u8>,
        blank: bool,
    }

    impl fmt::Write for Escaping<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.blank = self.blank && is_blank(text);
            write_escaped(self.out, text.as_bytes());
            Ok(())
        }
    }

    out.push(b'"');
    let mut escaping = Escaping { out, blank: true };
    write!(escaping, "{value}")?;
    let blank = escaping.blank;
    out.push(b'"');
    Ok(blank)
}

/// Whether `text` is empty or white space only.
#[inline]
pub(crate) fn is_blank(text: &str) -> bool {
    let is_plain = |byte: &u8| (0x21..0x80).contains(byte);
    !text.as_bytes().first().is_some_and(is_plain) && text.chars().all(char::is_whitespace)
}

/// Looks at eight bytes at once: mostly there is nothing to escape.
#[inline]
fn needs_escapes(text: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES * 0x80;
    // Each leaves a high bit if there is such a byte, also by a borrow from a
    // byte that is one, and never if there is none.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let equal = |word: u64, byte: u64| below(word ^ (ONES * byte), 1);
    let (words, rest) = text.as_chunks::<8>();
    words.iter().any(|word| {
        let word = u64::from_ne_bytes(*word);
        (below(word, 0x20) | equal(word, 0x22) | equal(word, 0x5c)) & HIGH != 0
    }) || rest.iter().any(|byte| ESCAPES[usize::from(*byte)] != 0)
}

fn write_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut written = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[usize::from(byte)];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[written..at]);
        written = at + 1;
        if escape == b'u' {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[written..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write(&mut out, text.as_bytes());
        let mut displayed = Vec::new();
        let blank = write_display(&mut displayed, text).unwrap();
        assert_eq!(out, displayed);
        assert_eq!(blank, is_blank(text));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_quotes_backslashes_and_controls_are_escaped() {
        assert_eq!(
            written("\u{8}\t\n\u{c}\r\u{0}\u{1f}"),
            r#""\b\t\n\f\r\u0000\u001f""#
        );
        assert_eq!(written(r#"a"b\c/d"#), r#""a\"b\\c/d""#);
        assert_eq!(
            written("\u{7f}\u{80}\u{2028}é😀"),
            "\"\u{7f}\u{80}\u{2028}é😀\""
        );
        assert_eq!(written(""), r#""""#);
    }

    #[test]
    fn every_byte_is_seen_at_every_place() {
        for length in 1..20 {
            for at in 0..length {
                for byte in 0..0x80 {
                    let mut text = vec![0xc3; length];
                    text[at] = byte;
                    let expected = byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(needs_escapes(&text), expected, "{byte} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn blank_is_unicode_white_space_only() {
        assert!(is_blank("") && is_blank(" \t\r\n\u{a0}\u{3000}"));
        assert!(!is_blank(" a ") && !is_blank("\u{0}") && !is_blank("\u{200b}"));
    }
}
