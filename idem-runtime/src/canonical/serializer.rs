//! The serializer: writes one value behind what is written already.

use serde::Serialize;
use serde::ser::Serializer;

use super::encoder::{Encoder, MAX_DEPTH, Shape};
use super::error::{Failure, Step};
use super::map::{Fields, Object};
use super::sequence::Array;
use super::{number, optional, text};

pub(crate) const TOO_DEEP: &str = "nested deeper than 128 levels";
const RAW: &str = "a `serde_json::value::RawValue`: its text has no canonical form";
pub(crate) const DISPLAY: &str = "its `Display` implementation failed";

/// How `serde_json` passes numbers under its feature `arbitrary_precision`,
/// and raw text under `raw_value`.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";
const RAW_TOKEN: &str = "$serde_json::private::RawValue";

/// Writes one value.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    encoder: &'a mut Encoder,
    depth: usize,
    /// Whether this is the caller's value, not a part of it.
    is_top: bool,
}

impl<'a> Writer<'a> {
    #[inline]
    pub(crate) fn top(encoder: &'a mut Encoder) -> Self {
        Self {
            encoder,
            depth: 0,
            is_top: true,
        }
    }

    #[inline]
    pub(crate) fn inner(encoder: &'a mut Encoder, depth: usize) -> Self {
        Self {
            encoder,
            depth,
            is_top: false,
        }
    }

    /// The depth of what lies inside this value.
    #[inline]
    fn deeper(&self) -> Result<usize, Failure> {
        if self.depth == MAX_DEPTH {
            return Err(Failure::new(TOO_DEEP));
        }
        Ok(self.depth + 1)
    }

    #[inline]
    fn array(mut self, is_tuple: bool) -> Result<Array<'a>, Failure> {
        self.depth = self.deeper()?;
        Ok(Array {
            body: self.encoder.out.len(),
            encoder: self.encoder,
            depth: self.depth,
            count: 0,
            variant: None,
            is_top_tuple: is_tuple && self.is_top,
            parts: Vec::new(),
        })
    }

    #[inline]
    fn object(self, variant: Option<&'static str>) -> Result<Object<'a>, Failure> {
        let depth = self.deeper()?;
        Ok(Object::open(self.encoder, depth, variant))
    }

    /// Opens the object of an enum's variant; the content follows.
    fn variant(self, variant: &'static str) -> Result<Self, Failure> {
        let depth = self.deeper()?;
        text::write_name(&mut self.encoder.out, b'{', variant);
        Ok(Self::inner(self.encoder, depth))
    }

    #[inline]
    fn literal(self, literal: &str) -> Shape {
        self.encoder.out.extend_from_slice(literal.as_bytes());
        Shape::default()
    }
}

macro_rules! integers {
    ($($method:ident($type:ty) $write:ident)*) => {$(
    #[inline]
        fn $method(self, value: $type) -> Result<Shape, Failure> {
            number::$write(&mut self.encoder.out, value.into());
            Ok(Shape::default())
        }
    )*};
}

impl<'a> Serializer for Writer<'a> {
    type Ok = Shape;
    type Error = Failure;
    type SerializeSeq = Array<'a>;
    type SerializeTuple = Array<'a>;
    type SerializeTupleStruct = Array<'a>;
    type SerializeTupleVariant = Array<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Object<'a>;

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

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<Shape, Failure> {
        Ok(if value {
            self.literal("true")
        } else {
            self.literal("false")
        })
    }

    fn serialize_f32(self, value: f32) -> Result<Shape, Failure> {
        self.serialize_f64(f64::from(value))
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<Shape, Failure> {
        number::write_f64(&mut self.encoder.out, value)?;
        Ok(Shape::default())
    }

    fn serialize_char(self, value: char) -> Result<Shape, Failure> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<Shape, Failure> {
        text::write(&mut self.encoder.out, value.as_bytes());
        Ok(Shape::text(text::is_blank(value)))
    }

    fn collect_str<T>(self, value: &T) -> Result<Shape, Failure>
    where
        T: std::fmt::Display + ?Sized,
    {
        match text::write_display(&mut self.encoder.out, value) {
            Ok(blank) => Ok(Shape::text(blank)),
            Err(_) => Err(Failure::new(DISPLAY)),
        }
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Shape, Failure> {
        self.deeper()?;
        let out = &mut self.encoder.out;
        out.push(b'[');
        for (index, byte) in value.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            number::write_u64(out, u64::from(*byte));
        }
        out.push(b']');
        Ok(Shape::default())
    }

    fn serialize_unit(self) -> Result<Shape, Failure> {
        self.literal("null");
        Ok(Shape::NULL)
    }

    #[inline]
    fn serialize_none(self) -> Result<Shape, Failure> {
        self.serialize_unit()
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Shape, Failure> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Shape, Failure> {
        self.depth = self.deeper()?;
        let encoder = self.encoder;
        let start = encoder.out.len();
        let shape = value.serialize(Writer {
            encoder: &mut *encoder,
            ..self
        })?;
        if !shape.nullish {
            return Ok(shape);
        }
        encoder.out.splice(start..start, *b"{\"Some\":");
        encoder.out.push(b'}');
        Ok(shape.under(true))
    }

    fn serialize_newtype_struct<T>(
        mut self,
        name: &'static str,
        value: &T,
    ) -> Result<Shape, Failure>
    where
        T: Serialize + ?Sized,
    {
        self.depth = self.deeper()?;
        let is_top = self.is_top;
        let encoder = self.encoder;
        let mut shape = value.serialize(Writer {
            encoder: &mut *encoder,
            ..self
        })?;
        if name == optional::NAME {
            shape.missing = None;
            if is_top {
                encoder.missing = None;
            }
        }
        Ok(shape)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Shape, Failure> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_variant<T>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Shape, Failure>
    where
        T: Serialize + ?Sized,
    {
        let Writer { encoder, depth, .. } = self.variant(variant)?;
        let shape = value
            .serialize(Writer::inner(encoder, depth))
            .map_err(|failure| failure.within(Step::Name(variant)))?;
        encoder.out.push(b'}');
        Ok(shape.under(variant == "Some"))
    }

    #[inline]
    fn serialize_seq(self, _len: Option<usize>) -> Result<Array<'a>, Failure> {
        self.array(false)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Array<'a>, Failure> {
        self.array(true)
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        _len: usize,
    ) -> Result<Array<'a>, Failure> {
        self.array(true)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Array<'a>, Failure> {
        let mut array = self.variant(variant)?.array(false)?;
        array.variant = Some(variant);
        Ok(array)
    }

    #[inline]
    fn serialize_map(self, _len: Option<usize>) -> Result<Object<'a>, Failure> {
        self.object(None)
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Fields<'a>, Failure> {
        match name {
            NUMBER_TOKEN => Ok(Fields::Number {
                encoder: self.encoder,
                is_written: false,
            }),
            RAW_TOKEN => Err(Failure::new(RAW)),
            _ => Ok(Fields::Object(self.object(None)?)),
        }
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Object<'a>, Failure> {
        self.variant(variant)?.object(Some(variant))
    }
}
