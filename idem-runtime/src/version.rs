//! What orders the calls of one key, and the bytes that keep that order.
//!
//! The bytes are stored, so this format never changes:
//!
//! | value | bytes |
//! |---|---|
//! | an integer from 0 to 2^64 - 1 | `80`, then 8 bytes |
//! | an integer above that | `81`, then 16 bytes |
//! | an integer from -2^63 to -1 | `7f`, then 8 bytes, two's complement |
//! | an integer below that | `7e`, then 16 bytes, two's complement |
//! | a time | its second since the epoch, rounded down, as an integer; then its nanoseconds, 4 bytes |
//! | an array | as it is |
//! | a pair | the first, then the second |
//!
//! All numbers are big-endian. Integers of every type share one encoding, so
//! `u32` may become `i64` or `u128` in a later deploy. No encoding is the start
//! of another one of its type, so a pair is ordered by its first part first.

use std::time::{SystemTime, UNIX_EPOCH};

/// What orders the calls of one key: a late message with a lower version never
/// runs after one with a higher version has been recorded.
///
/// | type | at most |
/// |---|---|
/// | integers of 8 to 64 bits, `usize`, `isize` | 9 bytes |
/// | `u128`, `i128` | 17 bytes |
/// | [`SystemTime`], also before 1970 | 13 bytes |
/// | `[u8; N]`, such as `uuid.into_bytes()` of a `UUIDv7` | `N` bytes |
/// | `(A, B)`, where `B` decides between equal `A` | the sum |
/// | a reference to one of these | |
///
/// A version has at most 32 bytes; a type that can have more does not compile.
/// All integers share one encoding: a version may become a wider integer in a
/// later deploy, signed or not, and keeps its order.
///
/// Times of other crates are integers: `at.timestamp_micros()`,
/// `at.unix_timestamp_nanos()`. The clock that stamps them must not go back, and
/// two changes in one tick are one version: add what tells them apart,
/// `(updated_at, sequence)`. Text is none, because `"10" < "9"`: parse it.
///
/// The trait is sealed, since an order that was wrong once stays in the store.
///
/// # Examples
/// ```
/// use idem::record::VersionBytes;
///
/// assert!(VersionBytes::of(&10_u64) > VersionBytes::of(&9_u64));
/// assert!(VersionBytes::of(&-1_i8) < VersionBytes::of(&0_u128));
/// assert!(VersionBytes::of(&(1, 9)) < VersionBytes::of(&(2, 0)));
/// ```
///
/// More than 32 bytes do not compile:
///
/// ```compile_fail,E0080
/// idem::record::VersionBytes::of(&[0_u8; 33]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a version: its bytes would not keep its order",
    label = "not a version",
    note = "a version is an integer, a `SystemTime`, a `[u8; N]` of at most 32 bytes (a UUIDv7: `id.into_bytes()`), or a pair of those",
    note = "text is none, because \"10\" < \"9\": parse it into a number",
    note = "of times of other crates, take the integer: `at.timestamp_micros()`"
)]
pub trait Version: Write {
    /// The most bytes that a value of this type has.
    const MAX_LEN: usize;
}

pub(crate) mod sealed {
    /// Appends bytes of which none of a greater value are lower.
    pub trait Write {
        fn write(&self, bytes: &mut Vec<u8>);
    }
}

use sealed::Write;

fn unsigned(value: u128, bytes: &mut Vec<u8>) {
    if let Ok(short) = u64::try_from(value) {
        bytes.push(0x80);
        bytes.extend(short.to_be_bytes());
    } else {
        bytes.push(0x81);
        bytes.extend(value.to_be_bytes());
    }
}

fn signed(value: i128, bytes: &mut Vec<u8>) {
    if let Ok(value) = u128::try_from(value) {
        unsigned(value, bytes);
    } else if let Ok(short) = i64::try_from(value) {
        bytes.push(0x7f);
        bytes.extend(short.to_be_bytes());
    } else {
        bytes.push(0x7e);
        bytes.extend(value.to_be_bytes());
    }
}

macro_rules! integers {
    ($write:ident as $wide:ty, at most $len:literal: $($type:ty)*) => {
        $(
            impl Version for $type {
                const MAX_LEN: usize = $len;
            }

            impl Write for $type {
                fn write(&self, bytes: &mut Vec<u8>) {
                    $write(*self as $wide, bytes);
                }
            }
        )*
    };
}

integers!(unsigned as u128, at most 9: u8 u16 u32 u64 usize);
integers!(unsigned as u128, at most 17: u128);
integers!(signed as i128, at most 9: i8 i16 i32 i64 isize);
integers!(signed as i128, at most 17: i128);

impl Version for SystemTime {
    const MAX_LEN: usize = 13;
}

impl Write for SystemTime {
    fn write(&self, bytes: &mut Vec<u8>) {
        let (second, nanos) = match self.duration_since(UNIX_EPOCH) {
            Ok(after) => (i128::from(after.as_secs()), after.subsec_nanos()),
            Err(error) => {
                let before = error.duration();
                let second = -i128::from(before.as_secs());
                match before.subsec_nanos() {
                    0 => (second, 0),
                    nanos => (second - 1, 1_000_000_000 - nanos),
                }
            }
        };
        signed(second, bytes);
        bytes.extend(nanos.to_be_bytes());
    }
}

impl<const N: usize> Version for [u8; N] {
    const MAX_LEN: usize = N;
}

impl<const N: usize> Write for [u8; N] {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self);
    }
}

impl<A: Version, B: Version> Version for (A, B) {
    const MAX_LEN: usize = A::MAX_LEN + B::MAX_LEN;
}

impl<A: Version, B: Version> Write for (A, B) {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.0.write(bytes);
        self.1.write(bytes);
    }
}

impl<V: Version + ?Sized> Version for &V {
    const MAX_LEN: usize = V::MAX_LEN;
}

impl<V: Version + ?Sized> Write for &V {
    fn write(&self, bytes: &mut Vec<u8>) {
        (**self).write(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::record::VersionBytes;

    fn hex(version: &impl Version) -> String {
        let bytes = VersionBytes::of(version);
        let digits = bytes.as_bytes().iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    }

    /// What stands in stores: a change of any line makes old records unordered.
    #[test]
    fn the_format_never_changes() {
        assert_eq!(hex(&0_u8), "800000000000000000");
        assert_eq!(hex(&258_i16), "800000000000000102");
        assert_eq!(hex(&u64::MAX), "80ffffffffffffffff");
        assert_eq!(hex(&-1_i8), "7fffffffffffffffff");
        assert_eq!(hex(&i64::MIN), "7f8000000000000000");
        let above = u128::from(u64::MAX) + 1;
        assert_eq!(hex(&above), "8100000000000000010000000000000000");
        let below = i128::from(i64::MIN) - 1;
        assert_eq!(hex(&below), "7effffffffffffffff7fffffffffffffff");
        let at = UNIX_EPOCH + Duration::new(1, 2);
        assert_eq!(hex(&at), "80000000000000000100000002");
        let at = UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(hex(&at), "7fffffffffffffffff3b9ac9ff");
        assert_eq!(hex(&[1, 255]), "01ff");
        assert_eq!(hex(&(1, [2])), "80000000000000000102");
        assert_eq!(hex(&&&1), "800000000000000001");
    }

    /// Values of every length, with many close to the seams.
    fn number() -> impl Strategy<Value = i128> {
        let seam = prop_oneof![
            Just(0),
            Just(i128::from(i64::MIN)),
            Just(i128::from(i64::MAX)),
            Just(i128::from(u64::MAX)),
        ];
        prop_oneof![
            any::<i128>(),
            any::<i64>().prop_map(i128::from),
            any::<i8>().prop_map(i128::from),
            (seam, -2..=2_i128).prop_map(|(seam, step)| seam + step),
        ]
    }

    fn time() -> impl Strategy<Value = SystemTime> {
        let seconds = prop_oneof![0..3_u64, 0..u64::from(u32::MAX)];
        (seconds, 0..1_000_000_000_u32, any::<bool>()).prop_map(|(seconds, nanos, before)| {
            let distance = Duration::new(seconds, nanos);
            if before {
                UNIX_EPOCH - distance
            } else {
                UNIX_EPOCH + distance
            }
        })
    }

    fn ordered<V: Version + Ord>(a: &V, b: &V) {
        assert_eq!(VersionBytes::of(a).cmp(&VersionBytes::of(b)), a.cmp(b));
        assert!(VersionBytes::of(a).as_bytes().len() <= V::MAX_LEN);
    }

    /// Asserts that a type's bytes are those of the same number as `i128`.
    macro_rules! same {
        ($value:expr, $($type:ty)*) => {
            $(if let Ok(value) = <$type>::try_from($value) {
                assert_eq!(VersionBytes::of(&value), VersionBytes::of(&$value));
                assert!(VersionBytes::of(&value).as_bytes().len() <= <$type>::MAX_LEN);
            })*
        };
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn integers_are_ordered_whatever_their_type(a in number(), b in number()) {
            ordered(&a, &b);
            same!(a, u8 u16 u32 u64 u128 usize i8 i16 i32 i64 isize);
        }

        #[test]
        fn large_ones_are_ordered(a in any::<u128>(), b in any::<u128>()) {
            ordered(&a, &b);
        }

        #[test]
        fn times_are_ordered(a in time(), b in time()) {
            ordered(&a, &b);
        }

        #[test]
        fn arrays_are_ordered(a in any::<[u8; 16]>(), b in any::<[u8; 16]>()) {
            ordered(&a, &b);
        }

        #[test]
        fn pairs_are_ordered_by_the_first_part_first(
            a in (number(), number()), b in (number(), number()),
            at in (time(), any::<[u8; 16]>()), same in any::<bool>(),
        ) {
            let b = if same { (a.0, b.1) } else { b };
            // Two of these may have more than 32 bytes: compare what they write.
            let bytes = |pair: &(i128, i128)| {
                let mut bytes = Vec::new();
                pair.write(&mut bytes);
                bytes
            };
            prop_assert_eq!(bytes(&a).cmp(&bytes(&b)), a.cmp(&b));
            ordered(&at, &(at.0, [7; 16]));
            ordered(&((1, 2), &at.0), &((1, 2), &(at.0 + Duration::from_nanos(1))));
        }
    }
}
