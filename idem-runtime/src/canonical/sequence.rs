//! Arrays, from sequences and tuples.

use std::ops::Range;

use serde::ser::{
    Serialize, SerializeSeq, SerializeTuple, SerializeTupleStruct, SerializeTupleVariant,
};

use super::Missing;
use super::encoder::{Encoder, Shape};
use super::error::{Failure, Step};
use super::serializer::Writer;

/// An array. Each element has a comma in front; that of the first one becomes
/// the `[` at the end.
#[derive(Debug)]
pub(crate) struct Array<'a> {
    pub(crate) encoder: &'a mut Encoder,
    /// The depth of the elements.
    pub(crate) depth: usize,
    pub(crate) count: usize,
    /// Where this array begins in the output.
    pub(crate) body: usize,
    /// The variant whose content this is, inside an object of its own.
    pub(crate) variant: Option<&'static str>,
    /// Whether this is the tuple that the caller passed.
    pub(crate) is_top_tuple: bool,
    pub(crate) parts: Vec<Range<usize>>,
}

impl Array<'_> {
    #[inline]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.encoder.out.push(b',');
        let start = self.encoder.out.len();
        match value.serialize(Writer::inner(self.encoder, self.depth)) {
            Ok(shape) if self.is_top_tuple => self.note_top_element(start, shape),
            Ok(_) => {}
            Err(failure) => return Err(self.fail(failure)),
        }
        self.count += 1;
        Ok(())
    }

    fn note_top_element(&mut self, start: usize, shape: Shape) {
        if let (None, Some(kind)) = (self.encoder.missing, shape.missing) {
            self.encoder.missing = Some(Missing::Element(self.count, kind));
        }
        if self.encoder.wants_parts {
            self.parts.push(start..self.encoder.out.len());
        }
    }

    #[cold]
    fn fail(&mut self, failure: Failure) -> Failure {
        let failure = self.encoder.note(failure).within(Step::Index(self.count));
        match self.variant {
            Some(variant) => failure.within(Step::Name(variant)),
            None => failure,
        }
    }

    #[inline]
    fn close(self) -> Shape {
        let out = &mut self.encoder.out;
        match out.get_mut(self.body) {
            Some(comma) => *comma = b'[',
            None => out.push(b'['),
        }
        out.push(b']');
        if self.variant.is_some() {
            self.encoder.out.push(b'}');
        }
        if self.is_top_tuple && self.encoder.wants_parts {
            self.encoder.parts = Some(self.parts);
        }
        Shape::default()
    }
}

impl SerializeSeq for Array<'_> {
    type Ok = Shape;
    type Error = Failure;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result<Shape, Failure> {
        Ok(self.close())
    }
}

impl SerializeTuple for Array<'_> {
    type Ok = Shape;
    type Error = Failure;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result<Shape, Failure> {
        Ok(self.close())
    }
}

impl SerializeTupleStruct for Array<'_> {
    type Ok = Shape;
    type Error = Failure;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result<Shape, Failure> {
        Ok(self.close())
    }
}

impl SerializeTupleVariant for Array<'_> {
    type Ok = Shape;
    type Error = Failure;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result<Shape, Failure> {
        Ok(self.close())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{append, encode, optional};

    #[test]
    fn elements_encoded_one_by_one_and_joined_are_the_tuple() {
        #[derive(serde::Serialize)]
        struct Line<'a> {
            sku: &'a str,
            count: u8,
        }
        let sku = "x\"y";
        let line = Line { sku, count: 2 };
        let (some, floats, none) = (Some(None::<u8>), [1.5, 1e21], optional(None::<u8>));
        let one_by_one = [
            encode("a").unwrap(),
            encode(&line).unwrap(),
            encode(&some).unwrap(),
            encode(&floats).unwrap(),
            encode(&none).unwrap(),
            encode(" ").unwrap(),
        ];
        let joined = one_by_one.map(|element| element.bytes).join(&b',');
        let mut appended = Vec::new();
        append(&mut appended, "a").unwrap();
        appended.push(b',');
        append(&mut appended, &line).unwrap();
        appended.push(b',');
        append(&mut appended, &some).unwrap();
        appended.push(b',');
        append(&mut appended, &floats).unwrap();
        appended.push(b',');
        append(&mut appended, &none).unwrap();
        appended.push(b',');
        append(&mut appended, " ").unwrap();
        assert_eq!(appended, joined);

        let whole = encode(&("a", &line, some, floats, none, " ")).unwrap();
        assert_eq!(whole.bytes, [b"[", joined.as_slice(), b"]"].concat());
    }
}
