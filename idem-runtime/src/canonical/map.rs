//! Objects: with sorted keys, without repeats.

use std::cmp::Ordering;

use serde::ser::{Serialize, SerializeMap, SerializeStruct, SerializeStructVariant};

use super::encoder::{Encoder, Shape};
use super::entry;
use super::error::{Failure, Step};
use super::serializer::Writer;
use super::sort::sort;
use super::{key, number, text};

const REPEATED: &str = "two entries of one object have the same key";
const UNPAIRED: &str = "a `Serialize` implementation wrote a map key or value without the other";

/// An object. Each entry begins with a comma; that of the first one becomes the
/// `{` when all are in order.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    encoder: &'a mut Encoder,
    /// The depth of the values.
    depth: usize,
    variant: Option<&'static str>,
    /// Where this object's part of the output and of the entries begins.
    body: usize,
    entries: usize,
    is_sorted: bool,
    /// A map key that waits for its value: its rank, and where it begins.
    pending: Option<(u64, usize)>,
    /// The rank of the newest entry, where it begins, and the shape of its value.
    rank: u64,
    start: usize,
    last: Shape,
}

impl<'a> Object<'a> {
    #[inline]
    pub(crate) fn open(
        encoder: &'a mut Encoder,
        depth: usize,
        variant: Option<&'static str>,
    ) -> Self {
        Self {
            body: encoder.out.len(),
            entries: encoder.entries.len(),
            encoder,
            depth,
            variant,
            is_sorted: true,
            pending: None,
            rank: 0,
            start: 0,
            last: Shape::default(),
        }
    }

    // With the name known, writing it is one step.
    #[inline(always)]
    fn field<T>(&mut self, name: &'static str, value: &T) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        let start = self.encoder.out.len();
        text::write_name(&mut self.encoder.out, b',', name);
        let rank = entry::rank(name.as_bytes());
        self.value(rank, start, Step::Name(name), value)
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        if self.pending.is_some() {
            return Err(self.fail(Failure::new(UNPAIRED), None));
        }
        let Encoder { out, key: text, .. } = &mut *self.encoder;
        text.clear();
        if let Err(failure) = key::write(text, key) {
            return Err(self.fail(failure, None));
        }
        self.pending = Some((entry::rank(text), out.len()));
        out.push(b',');
        text::write(out, text);
        out.push(b':');
        Ok(())
    }

    #[inline]
    fn value<T>(&mut self, rank: u64, start: usize, step: Step, value: &T) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        match value.serialize(Writer::inner(self.encoder, self.depth)) {
            Ok(shape) => self.last = shape,
            Err(failure) => return Err(self.fail(failure, Some(step))),
        }
        let Encoder { out, entries, .. } = &mut *self.encoder;
        let end = out.len();
        entries.push(rank, start, end);
        let before = (self.rank, self.start);
        (self.rank, self.start) = (rank, start);
        if rank > before.0 || !self.is_sorted || start == self.body {
            return Ok(());
        }
        self.look_back(before)
    }

    /// Looks at two entries of which the first bytes do not say that they are
    /// in order.
    fn look_back(&mut self, (rank, start): (u64, usize)) -> Result<(), Failure> {
        let out = &self.encoder.out;
        match entry::compare((rank, start), (self.rank, self.start), out) {
            Ordering::Less => {}
            Ordering::Greater => self.is_sorted = false,
            Ordering::Equal => return Err(self.fail(Failure::new(REPEATED), None)),
        }
        Ok(())
    }

    #[cold]
    fn fail(&mut self, failure: Failure, step: Option<Step>) -> Failure {
        let variant = self.variant.map(Step::Name);
        [step, variant]
            .into_iter()
            .flatten()
            .fold(self.encoder.note(failure), Failure::within)
    }

    #[inline]
    fn close(&mut self) -> Result<Shape, Failure> {
        if self.pending.is_some() {
            return Err(self.fail(Failure::new(UNPAIRED), None));
        }
        let Encoder { out, entries, .. } = &mut *self.encoder;
        if !self.is_sorted && !sort(out, entries.from(self.entries), self.body) {
            return Err(self.fail(Failure::new(REPEATED), None));
        }
        let mut shape = Shape::default();
        // Of an empty object the shape of the value is that of nothing.
        if self.start == self.body {
            shape = self.last.under(out[self.body..].starts_with(b",\"Some\":"));
        }
        entries.truncate(self.entries);
        match out.get_mut(self.body) {
            Some(comma) => *comma = b'{',
            None => out.push(b'{'),
        }
        out.push(b'}');
        if let Some(variant) = self.variant {
            out.push(b'}');
            shape = shape.under(variant == "Some");
        }
        Ok(shape)
    }
}

impl SerializeMap for Object<'_> {
    type Ok = Shape;
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        match self.pending.take() {
            Some((rank, start)) => self.value(rank, start, Step::Entry, value),
            None => Err(self.fail(Failure::new(UNPAIRED), None)),
        }
    }

    #[inline]
    fn end(mut self) -> Result<Shape, Failure> {
        self.close()
    }
}

impl SerializeStructVariant for Object<'_> {
    type Ok = Shape;
    type Error = Failure;

    #[inline(always)]
    fn serialize_field<T>(&mut self, name: &'static str, value: &T) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        self.field(name, value)
    }

    #[inline]
    fn end(mut self) -> Result<Shape, Failure> {
        self.close()
    }
}

/// A struct, or a number that `serde_json` keeps as text.
#[derive(Debug)]
pub(crate) enum Fields<'a> {
    Object(Object<'a>),
    Number {
        encoder: &'a mut Encoder,
        is_written: bool,
    },
}

impl SerializeStruct for Fields<'_> {
    type Ok = Shape;
    type Error = Failure;

    #[inline(always)]
    fn serialize_field<T>(&mut self, name: &'static str, value: &T) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        match self {
            Self::Object(object) => object.field(name, value),
            Self::Number {
                encoder,
                is_written,
            } => {
                if std::mem::replace(is_written, true) {
                    return Err(encoder.note(Failure::new(number::NOT_A_NUMBER)));
                }
                write_number(encoder, value).map_err(|failure| encoder.note(failure))
            }
        }
    }

    #[inline]
    fn end(mut self) -> Result<Shape, Failure> {
        match &mut self {
            Self::Object(object) => object.close(),
            Self::Number {
                is_written: true, ..
            } => Ok(Shape::default()),
            Self::Number { .. } => Err(Failure::new(number::NOT_A_NUMBER)),
        }
    }
}

fn write_number<T>(encoder: &mut Encoder, value: &T) -> Result<(), Failure>
where
    T: Serialize + ?Sized,
{
    let Encoder { out, key, .. } = encoder;
    key.clear();
    let number = key::write(key, value)
        .ok()
        .and_then(|()| std::str::from_utf8(key).ok())
        .ok_or_else(|| Failure::new(number::NOT_A_NUMBER))?;
    number::write_text(out, number)
}
