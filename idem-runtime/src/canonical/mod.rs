//! One text for one value: the form that keys and payloads are digested in.
//!
//! Rules of the format `idem canonical JSON v1`:
//!
//! 1. It is JSON without white space, written as RFC 8785 says: object keys
//!    are sorted by UTF-16 code units, strings keep every character except
//!    `"`, `\` and control characters, floats are written as ECMAScript does.
//!    `f32` is widened to `f64`, and `-0.0` is `0`.
//! 2. Integers have all their digits, up to 128 bits. Here RFC 8785 would
//!    round, and 9007199254740993 would be 9007199254740992.
//! 3. `None`, `()` and unit structs are `null`. A `Some` whose value would
//!    print as `null` prints `{"Some":null}`, so that `Some(None)` is not
//!    `None`; and one whose value would print like that is wrapped again.
//! 4. Enums are tagged from the outside, bytes are arrays of numbers, keys of
//!    maps are strings, characters, booleans, integers or unit variants: all as
//!    `serde_json` writes them.
//! 5. Errors, at any depth: NaN and infinities; other keys of maps; a key that
//!    stands twice in an object; `serde_json::value::RawValue`; more than 128
//!    levels of arrays, objects, `Some` and newtypes. The error names the place
//!    and never the value.
//! 6. The format never changes. Another one would have another name, and its
//!    digests would begin with another version.
//!
//! The bytes are written straight from the value. Which features of
//! `serde_json` another crate enables makes no difference to them.
//!
//! What it does not promise: that values of *different types* differ (`1` and
//! `1.0` are the same text, and so are a struct and a map), or that the same
//! word in composed and in decomposed Unicode is equal. `docs/fingerprint.md`
//! has the whole rule for other languages, and test vectors.
//!
//! # Examples
//!
//! ```
//! use idem::canonical::to_vec;
//! use serde::Serialize;
//!
//! #[derive(Serialize)]
//! struct Charge<'a> {
//!     order: &'a str,
//!     cents: u64,
//!     rate: f64,
//! }
//!
//! let charge = Charge { order: "o-7", cents: 9_007_199_254_740_993, rate: 1.0 };
//! assert_eq!(
//!     to_vec(&charge).unwrap(),
//!     br#"{"cents":9007199254740993,"order":"o-7","rate":1}"#
//! );
//!
//! let error = to_vec(&[1.0, f64::NAN]).unwrap_err();
//! assert_eq!(error.path, "$[1]");
//! ```

mod encoder;
mod entry;
mod error;
mod key;
mod map;
mod number;
mod optional;
mod sequence;
mod serializer;
mod sort;
mod text;

use std::fmt;
use std::ops::Range;

use serde::Serialize;

pub use error::CanonicalError;
pub use optional::{Optional, optional};

use encoder::Encoder;

/// The room that an output begins with: more than most values need.
const START: usize = 256;

/// Writes `value` as canonical JSON.
///
/// # Errors
///
/// If the value has no canonical form (rule 5 of the [module](self)), or its
/// `Serialize` implementation fails.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let mut encoder = Encoder::new(Vec::with_capacity(START), false);
    encoder.encode(value)?;
    Ok(encoder.out)
}

/// Writes `value` as canonical JSON, and says what a key has to know about it.
///
/// # Errors
///
/// As [`to_vec`]. A value that is [`missing`](Encoded::missing) is no error here.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Encoded, CanonicalError> {
    let mut encoder = Encoder::new(Vec::with_capacity(START), true);
    encoder.encode(value)?;
    Ok(Encoded {
        bytes: encoder.out,
        parts: encoder.parts,
        missing: encoder.missing,
    })
}

/// Writes `value` behind what is in `out`, and says what is missing from it. If
/// it has no canonical form, what it left there is of no use.
pub(crate) fn append<T>(out: &mut Vec<u8>, value: &T) -> Result<Option<Missing>, CanonicalError>
where
    T: Serialize + ?Sized,
{
    let mut encoder = Encoder::new(std::mem::take(out), false);
    let done = encoder.encode(value);
    *out = encoder.out;
    done.map(|()| encoder.missing)
}

/// A value as canonical JSON; made by [`encode`].
#[derive(Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The text.
    pub bytes: Vec<u8>,
    /// Where the elements lie in `bytes`, if the value is a tuple, a tuple
    /// struct or an array of fixed length.
    pub parts: Option<Vec<Range<usize>>>,
    /// Why the value is no key.
    pub missing: Option<Missing>,
}

// Never the bytes: they are what the caller keeps secret.
impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoded")
            .field("len", &self.bytes.len())
            .field("parts", &self.parts)
            .field("missing", &self.missing)
            .finish()
    }
}

/// What is missing from a value that was to be a key.
///
/// Newtypes and `Some` make no difference; [`optional`] exempts what it wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The value itself.
    Whole(MissingKind),
    /// The first such element of a tuple, by its position.
    Element(usize, MissingKind),
}

/// How a value is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingKind {
    /// `None`, `()`, a unit struct, or any other `null`.
    Null,
    /// A string or character of nothing but white space.
    Blank,
}
