//! The mark for a part of a key that may be absent.

use serde::{Serialize, Serializer};

/// The name by which the canonical serializer recognizes the mark.
pub(crate) const NAME: &str = "$idem::optional";

/// A value that may be absent from a key; made by [`optional`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Optional<T>(T);

/// Says that an absent or blank part of a key is meant.
///
/// A key that is `None` or blank, or has such an element, is refused: it is
/// mostly a field that a client forgot, and would make every such call the
/// same call. The wrapped value is encoded as if it were not wrapped.
///
/// # Examples
///
/// ```
/// use idem::canonical::{encode, optional};
///
/// let coupon: Option<&str> = None;
/// let forgotten = encode(&("order-7", coupon)).unwrap();
/// let meant = encode(&("order-7", optional(coupon))).unwrap();
///
/// assert!(forgotten.missing.is_some());
/// assert!(meant.missing.is_none());
/// assert_eq!(forgotten.bytes, meant.bytes);
/// ```
#[must_use]
pub const fn optional<T>(value: T) -> Optional<T> {
    Optional(value)
}

impl<T: Serialize> Serialize for Optional<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(NAME, &self.0)
    }
}
