//! Strings: quoted, and escaped as RFC 8785 section 3.2.2.2 wants it.

use std::fmt::{self, Write as _};

const QUOTE: u8 = b'"';
/// What is looked at and written in one step.
const BLOCK: usize = 16;
const WORD: usize = 8;
const ONES: u128 = u128::MAX / 0xff;

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
    const MOST: usize = BLOCK - 2;
    if text.len() <= MOST {
        let block = block(text);
        if !is_special(block, text.len()) {
            let end = u128::from(QUOTE) << (8 * (text.len() + 1));
            return write_block(out, block << 8 | u128::from(QUOTE) | end, text.len() + 2);
        }
    }
    write_long(out, text);
}

/// Writes what stands before the name of a field or variant, the name with its
/// quotes, and a colon. Where the compiler knows the name, this is one step.
#[inline(always)]
pub(crate) fn write_name(out: &mut Vec<u8>, before: u8, name: &str) {
    const MOST: usize = BLOCK - 4;
    let text = name.as_bytes();
    if text.len() <= MOST {
        let block = block(text);
        if !is_special(block, text.len()) {
            let start = u128::from(before) | u128::from(QUOTE) << 8;
            let end = u128::from(QUOTE) | u128::from(b':') << 8;
            let end = end << (8 * (text.len() + 2));
            return write_block(out, start | block << 16 | end, text.len() + 4);
        }
    }
    write_long_name(out, before, text);
}

fn write_long_name(out: &mut Vec<u8>, before: u8, name: &[u8]) {
    out.push(before);
    write_long(out, name);
    out.push(b':');
}

fn write_long(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() + 2);
    out.push(QUOTE);
    if needs_escapes(text) {
        write_escaped(out, text);
    } else {
        out.extend_from_slice(text);
    }
    out.push(QUOTE);
}

/// Writes the first bytes of `block` in one step: a copy of a length that is
/// only known at run time takes several.
#[inline(always)]
fn write_block(out: &mut Vec<u8>, block: u128, length: usize) {
    let end = out.len() + length;
    out.extend_from_slice(&block.to_le_bytes());
    out.truncate(end);
}

/// Up to sixteen bytes as a number, the first one the lowest, then zeros.
#[inline(always)]
fn block(text: &[u8]) -> u128 {
    match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) => {
            let last = u128::from(u64::from_le_bytes(*last));
            u128::from(u64::from_le_bytes(*first)) | last << (8 * (text.len() - WORD))
        }
        _ => u128::from(word(text)),
    }
}

/// Up to seven bytes as a number, the first one the lowest, then zeros.
#[inline(always)]
pub(crate) fn word(text: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let last = u64::from(u32::from_le_bytes(*last));
        return u64::from(u32::from_le_bytes(*first)) | last << (8 * (text.len() - WORD / 2));
    }
    match *text {
        [a, b, c] => u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16,
        [a, b] => u64::from(a) | u64::from(b) << 8,
        [a] => u64::from(a),
        _ => 0,
    }
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

/// Whether one of the first bytes of a block, of which it is not full, is
/// written with an escape.
#[inline(always)]
fn is_special(block: u128, length: usize) -> bool {
    // The zeros behind them become spaces.
    special(block | (ONES * 0x20) << (8 * length)) != 0
}

/// A block that is zero if none of these bytes is written with an escape.
#[inline(always)]
fn special(block: u128) -> u128 {
    // Each leaves a high bit if there is such a byte, also by a borrow from a
    // byte that is one, and never if there is none.
    let below = |block: u128, limit: u128| block.wrapping_sub(ONES * limit) & !block;
    let equal = |byte: u8| below(block ^ (ONES * u128::from(byte)), 1);
    (below(block, 0x20) | equal(QUOTE) | equal(b'\\')) & (ONES * 0x80)
}

/// Looks at a block at once: mostly there is nothing to escape.
fn needs_escapes(text: &[u8]) -> bool {
    // In a form that the compiler makes one of vectors.
    let is_special = |block: &[u8; BLOCK]| {
        let is = |byte: u8| byte < 0x20 || byte == QUOTE || byte == b'\\';
        block.iter().fold(false, |any, byte| any | is(*byte))
    };
    match text.last_chunk() {
        Some(last) => text.as_chunks().0.iter().any(is_special) || is_special(last),
        None => text.iter().any(|byte| ESCAPES[usize::from(*byte)] != 0),
    }
}

/// How many bytes behind the first one, a quote, are surely the same in both,
/// and neither escaped nor the end; with the quote.
pub(crate) fn same_plain(a: &[u8], b: &[u8]) -> usize {
    let (Some((_, a)), Some((_, b))) = (a.split_first(), b.split_first()) else {
        return 0;
    };
    let blocks = a.as_chunks::<BLOCK>().0.iter().zip(b.as_chunks().0);
    let is_same =
        |(a, b): &(&[u8; BLOCK], &[u8; BLOCK])| a == b && special(u128::from_le_bytes(**a)) == 0;
    1 + BLOCK * blocks.take_while(is_same).count()
}

/// The bytes of a text that is written, from its first quote to its last one,
/// without escapes.
pub(crate) struct Unescaped<'a>(&'a [u8]);

impl<'a> Unescaped<'a> {
    pub(crate) fn new(written: &'a [u8]) -> Self {
        Self(written.get(1..).unwrap_or_default())
    }
}

impl Iterator for Unescaped<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = match *self.0 {
            [] | [QUOTE, ..] => return None,
            [b'\\', b'u', b'0', b'0', high, low, ref rest @ ..] => {
                let digit = |digit| HEX.iter().position(|hex| *hex == digit);
                (16 * digit(high)? + digit(low)?, rest)
            }
            [b'\\', escape, ref rest @ ..] => {
                let is_it = |escaped: &u8| *escaped == escape;
                (ESCAPES.iter().position(is_it)?, rest)
            }
            [byte, ref rest @ ..] => (usize::from(byte), rest),
        };
        self.0 = rest;
        u8::try_from(byte).ok()
    }
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
        for length in 1..40 {
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
    fn what_is_written_in_one_step_is_what_is_written_byte_by_byte() {
        for length in 0..40 {
            for at in 0..length {
                for special in ["x", "\"", "\\", "\n", "\u{1f}", "\u{7f}", "é", "😀"] {
                    let mut text = "a".repeat(length);
                    text.insert_str(at, special);
                    let expected = serde_json::to_string(&text).unwrap();
                    assert_eq!(written(&text), expected);
                    let mut name = Vec::new();
                    write_name(&mut name, b',', &text);
                    assert_eq!(name, format!(",{expected}:").as_bytes());
                    let read: Vec<_> = Unescaped::new(&name[1..]).collect();
                    assert_eq!(read, text.as_bytes());
                }
            }
        }
    }

    #[test]
    fn every_character_is_read_back() {
        for byte in 0..0x80_u8 {
            let text = char::from(byte).to_string();
            let written = written(&text);
            let read: Vec<_> = Unescaped::new(written.as_bytes()).collect();
            assert_eq!(read, text.as_bytes());
        }
    }

    #[test]
    fn blank_is_unicode_white_space_only() {
        assert!(is_blank("") && is_blank(" \t\r\n\u{a0}\u{3000}"));
        assert!(!is_blank(" a ") && !is_blank("\u{0}") && !is_blank("\u{200b}"));
    }
}
