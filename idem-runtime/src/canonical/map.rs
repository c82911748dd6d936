//! Objects: with sorted keys, without repeats.

use std::cmp::Ordering;

use serde::ser::{Serialize, SerializeMap, SerializeStruct, SerializeStructVariant};

use super::encoder::{Encoder, Shape};
use super::entry::{Entry, Name};
use super::error::{Failure, Step};
use super::serializer::Writer;
use super::{key, number, text};

const REPEATED: &str = "two entries of one object have the same key";
const UNPAIRED: &str = "a `Serialize` implementation wrote a map key or value without the other";

/// An object whose `{` is written.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    encoder: &'a mut Encoder,
    /// The depth of the values.
    depth: usize,
    variant: Option<&'static str>,
    /// Where this object's part of each buffer begins.
    body: usize,
    entries: usize,
    keys: usize,
    is_sorted: bool,
    /// A map key that waits for its value, and where it begins.
    pending: Option<(Name, usize)>,
    /// The shape of the newest value.
    last: Shape,
}

impl<'a> Object<'a> {
    #[inline]
    pub(crate) fn open(
        encoder: &'a mut Encoder,
        depth: usize,
        variant: Option<&'static str>,
    ) -> Self {
        encoder.out.push(b'{');
        if encoder.entries.capacity() == 0 {
            encoder.entries.reserve(16);
        }
        Self {
            body: encoder.out.len(),
            entries: encoder.entries.len(),
            keys: encoder.keys.len(),
            encoder,
            depth,
            variant,
            is_sorted: true,
            pending: None,
            last: Shape::default(),
        }
    }

    #[inline]
    fn field<T>(&mut self, name: &'static str, value: &T) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        let start = self.begin_entry();
        text::write(&mut self.encoder.out, name.as_bytes());
        self.value(Name::Field(name), start, Step::Name(name), value)
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        if self.pending.is_some() {
            return Err(self.fail(Failure::new(UNPAIRED), None));
        }
        let start = self.begin_entry();
        let from = self.encoder.keys.len();
        if let Err(failure) = key::write(&mut self.encoder.keys, key) {
            return Err(self.fail(failure, None));
        }
        let range = from..self.encoder.keys.len();
        text::write(&mut self.encoder.out, &self.encoder.keys[range.clone()]);
        self.pending = Some((Name::Key(range), start));
        Ok(())
    }

    #[inline]
    fn begin_entry(&mut self) -> usize {
        if self.encoder.out.len() > self.body {
            self.encoder.out.push(b',');
        }
        self.encoder.out.len()
    }

    #[inline]
    fn value<T>(&mut self, name: Name, start: usize, step: Step, value: &T) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        self.encoder.out.push(b':');
        match value.serialize(Writer::inner(self.encoder, self.depth)) {
            Ok(shape) => self.last = shape,
            Err(failure) => return Err(self.fail(failure, Some(step))),
        }
        let Encoder {
            out, entries, keys, ..
        } = &mut *self.encoder;
        let entry = Entry::new(name, start..out.len(), keys);
        if self.is_sorted
            && let Some(before) = entries[self.entries..].last()
        {
            match before.compare(&entry, keys) {
                Ordering::Less => {}
                Ordering::Greater => self.is_sorted = false,
                Ordering::Equal => return Err(self.fail(Failure::new(REPEATED), None)),
            }
        }
        entries.push(entry);
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
    fn close(mut self) -> Result<Shape, Failure> {
        if self.pending.is_some() {
            return Err(self.fail(Failure::new(UNPAIRED), None));
        }
        if !self.is_sorted
            && let Err(failure) = self.sort()
        {
            return Err(self.fail(failure, None));
        }
        let mut shape = Shape::default();
        if let [only] = &self.encoder.entries[self.entries..] {
            shape = self.last.under(only.name.bytes(&self.encoder.keys));
        }
        self.encoder.entries.truncate(self.entries);
        self.encoder.keys.truncate(self.keys);
        self.encoder.out.push(b'}');
        if let Some(variant) = self.variant {
            self.encoder.out.push(b'}');
            shape = shape.under(variant.as_bytes());
        }
        Ok(shape)
    }

    /// Puts the entries in order: first behind the body, then over it.
    fn sort(&mut self) -> Result<(), Failure> {
        let Encoder {
            out, entries, keys, ..
        } = &mut *self.encoder;
        let own = &mut entries[self.entries..];
        own.sort_unstable_by(|a, b| a.compare(b, keys));
        if own
            .windows(2)
            .any(|pair| pair[0].compare(&pair[1], keys).is_eq())
        {
            return Err(Failure::new(REPEATED));
        }
        let end = out.len();
        out.reserve(end - self.body);
        for entry in own {
            if out.len() > end {
                out.push(b',');
            }
            out.extend_from_within(entry.span.clone());
        }
        out.copy_within(end.., self.body);
        out.truncate(end);
        Ok(())
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
            Some((name, start)) => self.value(name, start, Step::Entry, value),
            None => Err(self.fail(Failure::new(UNPAIRED), None)),
        }
    }

    fn end(self) -> Result<Shape, Failure> {
        self.close()
    }
}

impl SerializeStructVariant for Object<'_> {
    type Ok = Shape;
    type Error = Failure;

    fn serialize_field<T>(&mut self, name: &'static str, value: &T) -> Result<(), Failure>
    where
        T: Serialize + ?Sized,
    {
        self.field(name, value)
    }

    fn end(self) -> Result<Shape, Failure> {
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

    fn end(self) -> Result<Shape, Failure> {
        match self {
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
    let from = encoder.keys.len();
    let number = key::write(&mut encoder.keys, value)
        .ok()
        .and_then(|()| std::str::from_utf8(&encoder.keys[from..]).ok())
        .ok_or_else(|| Failure::new(number::NOT_A_NUMBER))?;
    number::write_text(&mut encoder.out, number)?;
    encoder.keys.truncate(from);
    Ok(())
}
