//! Whether JSON can give a value back.
//!
//! `serde_json` writes NaN, infinities and `Some(None)` as `null` without a
//! word. This serializer writes nothing: its answer for each value is whether
//! that value prints as `null`.

use std::fmt;

use serde::ser::{self, Serialize};

/// Returns whether JSON gives this value back as it is. What cannot be written
/// at all is left to the writer to report.
pub(super) fn is_faithful<T: Serialize + ?Sized>(value: &T) -> bool {
    !matches!(value.serialize(Probe), Err(Stop::Unfaithful))
}

#[derive(Debug)]
enum Stop {
    /// JSON would give another value back.
    Unfaithful,
    /// The value's own `Serialize` failed.
    Failed,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not faithful in JSON")
    }
}

impl std::error::Error for Stop {}

impl ser::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Failed
    }
}

/// How a value prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Print {
    Null,
    /// The string "null", which is `null` where it is a raw value's text.
    NullText,
    Other,
}

struct Probe;

type Printed = Result<Print, Stop>;

macro_rules! scalars {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, _: $type) -> Printed { Ok(Print::Other) })*
    };
}

impl ser::Serializer for Probe {
    type Ok = Print;
    type Error = Stop;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    scalars! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32)
        serialize_i64(i64) serialize_i128(i128) serialize_u8(u8) serialize_u16(u16)
        serialize_u32(u32) serialize_u64(u64) serialize_u128(u128) serialize_char(char)
        serialize_bytes(&[u8])
    }

    fn serialize_f32(self, v: f32) -> Printed {
        self.serialize_f64(f64::from(v))
    }

    fn serialize_f64(self, v: f64) -> Printed {
        if v.is_finite() {
            Ok(Print::Other)
        } else {
            Err(Stop::Unfaithful)
        }
    }

    fn serialize_str(self, v: &str) -> Printed {
        Ok(if v == "null" {
            Print::NullText
        } else {
            Print::Other
        })
    }

    fn serialize_none(self) -> Printed {
        Ok(Print::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Printed {
        match value.serialize(Self)? {
            Print::Null => Err(Stop::Unfaithful),
            Print::NullText | Print::Other => Ok(Print::Other),
        }
    }

    fn serialize_unit(self) -> Printed {
        Ok(Print::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Printed {
        Ok(Print::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Printed {
        Ok(Print::Other)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, v: &T) -> Printed {
        v.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Printed {
        value.serialize(self).map(|_| Print::Other)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts, Stop> {
        Ok(Parts::default())
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts, Stop> {
        Ok(Parts::default())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts, Stop> {
        Ok(Parts::default())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts, Stop> {
        Ok(Parts::default())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts, Stop> {
        Ok(Parts::default())
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Parts, Stop> {
        Ok(Parts {
            raw: name == "$serde_json::private::RawValue",
            ..Parts::default()
        })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Parts, Stop> {
        Ok(Parts::default())
    }

    fn is_human_readable(&self) -> bool {
        true
    }
}

/// The parts of a compound value, which prints as `null` only if it is a raw
/// value with that text.
#[derive(Debug, Default)]
struct Parts {
    raw: bool,
    null: bool,
}

impl Parts {
    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.null = value.serialize(Probe)? == Print::NullText;
        Ok(())
    }

    fn printed(self) -> Printed {
        Ok(if self.raw && self.null {
            Print::Null
        } else {
            Print::Other
        })
    }
}

macro_rules! compound {
    ($($trait:ident::$method:ident)*) => {$(
        impl ser::$trait for Parts {
            type Ok = Print;
            type Error = Stop;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
                self.part(value)
            }

            fn end(self) -> Printed {
                self.printed()
            }
        }
    )*};
    (named $($trait:ident)*) => {$(
        impl ser::$trait for Parts {
            type Ok = Print;
            type Error = Stop;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _: &'static str,
                value: &T,
            ) -> Result<(), Stop> {
                self.part(value)
            }

            fn end(self) -> Printed {
                self.printed()
            }
        }
    )*};
}

compound! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}
compound! { named SerializeStruct SerializeStructVariant }

impl ser::SerializeMap for Parts {
    type Ok = Print;
    type Error = Stop;

    // What JSON cannot use as a key, the writer reports.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Stop> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        self.part(value)
    }

    fn end(self) -> Printed {
        self.printed()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::is_faithful;

    #[test]
    fn what_json_would_change_is_not_faithful() {
        assert!(!is_faithful(&f64::NAN));
        assert!(!is_faithful(&vec![1.0, f64::INFINITY]));
        assert!(!is_faithful(&Some(())));
        assert!(!is_faithful(&Some(None::<u8>)));
        assert!(!is_faithful(&BTreeMap::from([("rate", Some(None::<u8>))])));
        assert!(!is_faithful(&Some(serde_json::Value::Null)));
        assert!(!is_faithful(&(1, [f32::NAN])));
    }

    #[test]
    fn what_json_gives_back_is_faithful() {
        assert!(is_faithful(&()));
        assert!(is_faithful(&None::<u8>));
        assert!(is_faithful(&Some("null")));
        assert!(is_faithful(&Some(Some(1))));
        assert!(is_faithful(&(0, false, "", Vec::<u8>::new(), 1.5)));
        assert!(is_faithful(&u128::MAX));
    }
}
