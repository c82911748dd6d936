//! The keys of maps: what `serde_json` allows, except floats.

use std::io::Write as _;

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use super::encoder::MAX_DEPTH;
use super::error::Failure;
use super::number;
use super::serializer::{DISPLAY, TOO_DEEP};

const NOT_SCALAR: &str = "a map key that is no string, character, boolean or integer";
const FLOAT: &str = "a map key that is a float";

/// Appends the text of `key`, unescaped.
pub(crate) fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, key: &T) -> Result<(), Failure> {
    key.serialize(KeyWriter { out, depth: 0 })
}

#[derive(Debug)]
struct KeyWriter<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
}

impl KeyWriter<'_> {
    fn deeper(self) -> Result<Self, Failure> {
        if self.depth == MAX_DEPTH {
            return Err(Failure::new(TOO_DEEP));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }
}

macro_rules! integers {
    ($($method:ident($type:ty) $write:ident)*) => {$(
        fn $method(self, value: $type) -> Result<(), Failure> {
            number::$write(self.out, value.into());
            Ok(())
        }
    )*};
}

macro_rules! refused {
    ($($method:ident($($type:ty),*) -> $ok:ty, $reason:expr;)*) => {$(
        fn $method(self, $(_: $type),*) -> Result<$ok, Failure> {
            Err(Failure::new($reason))
        }
    )*};
}

type Refused = Impossible<(), Failure>;

impl Serializer for KeyWriter<'_> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = Refused;
    type SerializeTuple = Refused;
    type SerializeTupleStruct = Refused;
    type SerializeTupleVariant = Refused;
    type SerializeMap = Refused;
    type SerializeStruct = Refused;
    type SerializeStructVariant = Refused;

    integers! {
        serialize_i8(i8) write_i64
        serialize_i16(i16) write_i64
        serialize_i32(i32) write_i64
        serialize_i64(i64) write_i64
        serialize_i128(i128) write_i128
        serialize_u8(u8) write_u64
        serialize_u16(u16) write_u64
        serialize_u32(u32) write_u64
        serialize_u64(u64) write_u64
        serialize_u128(u128) write_u128
    }

    fn serialize_bool(self, value: bool) -> Result<(), Failure> {
        self.serialize_str(if value { "true" } else { "false" })
    }

    fn serialize_char(self, value: char) -> Result<(), Failure> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Failure> {
        self.out.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn collect_str<T>(self, value: &T) -> Result<(), Failure>
    where
        T: std::fmt::Display + ?Sized,
    {
        write!(self.out, "{value}").map_err(|_| Failure::new(DISPLAY))
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Failure> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T>(self, _name: &'static str, value: &T) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        value.serialize(self.deeper()?)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failure> {
        value.serialize(self.deeper()?)
    }

    fn serialize_newtype_variant<T>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        Err(Failure::new(NOT_SCALAR))
    }

    refused! {
        serialize_f32(f32) -> (), FLOAT;
        serialize_f64(f64) -> (), FLOAT;
        serialize_bytes(&[u8]) -> (), NOT_SCALAR;
        serialize_none() -> (), NOT_SCALAR;
        serialize_unit() -> (), NOT_SCALAR;
        serialize_unit_struct(&'static str) -> (), NOT_SCALAR;
        serialize_seq(Option<usize>) -> Refused, NOT_SCALAR;
        serialize_tuple(usize) -> Refused, NOT_SCALAR;
        serialize_tuple_struct(&'static str, usize) -> Refused, NOT_SCALAR;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Refused, NOT_SCALAR;
        serialize_map(Option<usize>) -> Refused, NOT_SCALAR;
        serialize_struct(&'static str, usize) -> Refused, NOT_SCALAR;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Refused, NOT_SCALAR;
    }
}
