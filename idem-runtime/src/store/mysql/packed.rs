//! What is short of a record, in one column of a result.
//!
//! A server describes each column of a result anew with each answer, and a driver
//! reads what is described: of a keyed read that is a quarter. So numbers and
//! short texts come as one: the numbers in decimal, then the lengths of the texts,
//! all behind commas; a semicolon; the texts themselves. What is null has an empty
//! place. The statements pack it, and this reads it.

use crate::error::StoreError;
use crate::store::sql::damaged;

/// Numbers and texts, each in the order of the statement.
#[derive(Debug, PartialEq)]
pub(super) struct Packed<'r, const NUMBERS: usize, const TEXTS: usize> {
    pub(super) numbers: [Option<i64>; NUMBERS],
    pub(super) texts: [Option<&'r [u8]>; TEXTS],
}

impl<'r, const NUMBERS: usize, const TEXTS: usize> Packed<'r, NUMBERS, TEXTS> {
    /// Reads all of it. What is not as many numbers and texts, to the last byte,
    /// is none of it.
    pub(super) fn read(bytes: &'r [u8]) -> Result<Self, StoreError> {
        Self::unpack(bytes).ok_or_else(|| damaged("packed columns"))
    }

    fn unpack(bytes: &'r [u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b';')?;
        let (head, mut rest) = (&bytes[..end], &bytes[end + 1..]);
        let mut places = std::str::from_utf8(head).ok()?.split(',');
        let mut number = || match places.next()? {
            "" => Some(None),
            digits => digits.parse::<i64>().ok().map(Some),
        };
        let mut packed = Self {
            numbers: [None; NUMBERS],
            texts: [None; TEXTS],
        };
        for place in &mut packed.numbers {
            *place = number()?;
        }
        for place in &mut packed.texts {
            if let Some(len) = number()? {
                let (text, behind) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                *place = Some(text);
                rest = behind;
            }
        }
        (places.next().is_none() && rest.is_empty()).then_some(packed)
    }
}

/// A number that is there, and that its column can hold.
pub(super) fn needed<T: TryFrom<i64>>(
    number: Option<i64>,
    what: &'static str,
) -> Result<T, StoreError> {
    some(number, what)?.ok_or_else(|| damaged(what))
}

/// A number that may be null.
pub(super) fn some<T: TryFrom<i64>>(
    number: Option<i64>,
    what: &'static str,
) -> Result<Option<T>, StoreError> {
    let number = number.map(T::try_from).transpose();
    number.map_err(|_| damaged(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Packed<'_, 3, 3>> {
        Packed::read(bytes).ok()
    }

    #[test]
    fn nothing_is_told_from_empty_and_every_byte_may_be_in_a_text() {
        let packed = read(b"-9223372036854775808,,9223372036854775807,0,,4;,;\x00\xff").unwrap();
        assert_eq!(packed.numbers, [Some(i64::MIN), None, Some(i64::MAX)]);
        assert_eq!(packed.texts, [Some(&b""[..]), None, Some(b",;\x00\xff")]);

        let packed = read(b"0,-1,1,1,2,3;abbccc").unwrap();
        assert_eq!(packed.numbers, [Some(0), Some(-1), Some(1)]);
        let texts: [&[u8]; 3] = [b"a", b"bb", b"ccc"];
        assert_eq!(packed.texts, texts.map(Some));

        let packed = read(b",,,,,;").unwrap();
        assert_eq!((packed.numbers, packed.texts), ([None; 3], [None; 3]));
    }

    #[test]
    fn what_is_not_as_many_numbers_and_bytes_is_not_read() {
        for bytes in [
            b"".as_slice(),
            b"1,2,3,1,1,1",
            b"1,2,3,1,1,1;ab",
            b"1,2,3,1,1,1;abcd",
            b"1,2,3,1,1;ab",
            b"1,2,3,1,1,1,;abc",
            b"1,2,3,1,1,-1;ab",
            b"1,2,3,1,1,9223372036854775807;ab",
            b"1,2,9223372036854775808,,,;",
            b"1,2,3.0,,,;",
            b"1,2,0x3,,,;",
            b"1,2, 3,,,;",
            b"1,2,\xff,,,;",
        ] {
            assert_eq!(read(bytes), None, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_number_is_as_large_as_its_column_may_be() {
        assert_eq!(needed::<i16>(Some(-32_768), "").unwrap(), -32_768);
        assert!(needed::<i16>(Some(32_768), "").is_err());
        assert!(needed::<i64>(None, "").is_err());
        assert_eq!(some::<i32>(None, "").unwrap(), None);
        assert!(some::<i32>(Some(i64::MIN), "").is_err());
    }
}
