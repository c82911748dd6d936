//! Why a value has no canonical form, and where in the value that is.

use std::fmt;

use serde::ser;

/// A value that has no canonical form.
///
/// Neither field ever contains a part of the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalError {
    /// Where: `$` is the value itself, then field and variant names and
    /// indexes, as in `$.customer.rate[2]`. An entry of a map is `*`.
    pub path: String,
    /// What is wrong there.
    pub reason: &'static str,
}

impl fmt::Display for CanonicalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no canonical form at {}: {}", self.path, self.reason)
    }
}

impl std::error::Error for CanonicalError {}

/// One step of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Name(&'static str),
    Index(usize),
    Entry,
}

/// The error inside the serializer: boxed, so that the good path stays small.
#[derive(Debug)]
pub(crate) struct Failure(Box<Inner>);

#[derive(Debug)]
struct Inner {
    reason: &'static str,
    /// From the inside out.
    steps: Vec<Step>,
}

impl Failure {
    #[cold]
    pub(crate) fn new(reason: &'static str) -> Self {
        Self(Box::new(Inner {
            reason,
            steps: Vec::new(),
        }))
    }

    /// Adds the step that leads to the place described so far.
    #[cold]
    pub(crate) fn within(mut self, step: Step) -> Self {
        self.0.steps.push(step);
        self
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.0.reason
    }
}

impl From<Failure> for CanonicalError {
    fn from(failure: Failure) -> Self {
        let mut path = String::from("$");
        for step in failure.0.steps.iter().rev() {
            match step {
                Step::Name(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                Step::Index(index) => {
                    path.push('[');
                    path.push_str(&index.to_string());
                    path.push(']');
                }
                Step::Entry => path.push_str(".*"),
            }
        }
        Self {
            path,
            reason: failure.0.reason,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.reason)
    }
}

impl std::error::Error for Failure {}

impl ser::Error for Failure {
    // The message is dropped: it may quote the value.
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::new("its `Serialize` implementation failed")
    }
}
