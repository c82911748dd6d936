//! The buffers of one encoding, and what is known of a value just written.

use std::ops::Range;

use serde::Serialize;

use super::entry::Entries;
use super::error::{CanonicalError, Failure};
use super::serializer::Writer;
use super::{Missing, MissingKind};

/// Arrays, objects, `Some` and newtypes around one value, at most.
pub(crate) const MAX_DEPTH: usize = 128;

/// What the surroundings of a value have to know about its text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// The text is `null`, or `{"Some":…}` around such a text.
    pub(crate) nullish: bool,
    pub(crate) missing: Option<MissingKind>,
}

impl Shape {
    pub(crate) const NULL: Self = Self {
        nullish: true,
        missing: Some(MissingKind::Null),
    };

    #[inline]
    pub(crate) fn text(blank: bool) -> Self {
        Self {
            nullish: false,
            missing: blank.then_some(MissingKind::Blank),
        }
    }

    /// The shape of an object whose only entry has this value.
    #[inline]
    pub(crate) fn under(self, is_some: bool) -> Self {
        Self {
            nullish: self.nullish && is_some,
            missing: None,
        }
    }
}

/// The buffers of one encoding, shared by all levels, so that a level
/// allocates nothing of its own.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub(crate) out: Vec<u8>,
    pub(crate) entries: Entries,
    /// A map key that is being written, unescaped.
    pub(crate) key: Vec<u8>,
    /// Whether the ranges of the elements are wanted.
    pub(crate) wants_parts: bool,
    pub(crate) parts: Option<Vec<Range<usize>>>,
    pub(crate) missing: Option<Missing>,
    /// A failure that a `Serialize` implementation could have swallowed.
    swallowed: Option<&'static str>,
}

impl Encoder {
    #[inline]
    pub(crate) fn new(out: Vec<u8>, wants_parts: bool) -> Self {
        Self {
            out,
            entries: Entries::default(),
            key: Vec::new(),
            wants_parts,
            parts: None,
            missing: None,
            swallowed: None,
        }
    }

    pub(crate) fn encode<T>(&mut self, value: &T) -> Result<(), CanonicalError>
    where
        T: Serialize + ?Sized,
    {
        let shape = value.serialize(Writer::top(self))?;
        if let Some(kind) = shape.missing {
            self.missing = Some(Missing::Whole(kind));
        }
        match self.swallowed {
            Some(reason) => Err(Failure::new(reason).into()),
            None => Ok(()),
        }
    }

    /// Remembers a failure that the caller may ignore.
    #[cold]
    pub(crate) fn note(&mut self, failure: Failure) -> Failure {
        self.swallowed = Some(failure.reason());
        failure
    }
}
