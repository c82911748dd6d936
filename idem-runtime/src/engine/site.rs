//! What is known of an annotated function at compile time.

use std::borrow::Cow;
use std::time::Duration;

use crate::policy::{OnInProgress, OnMissingKey, OnUnknown};

/// An annotated function, as the attribute describes it.
#[derive(Debug)]
pub struct Site {
    /// The operation's name.
    pub name: Name,
    /// `module_path!()`.
    pub module: &'static str,
    /// The function's name.
    pub function: &'static str,
    /// `file!()`.
    pub file: &'static str,
    /// `line!()`.
    pub line: u32,
    /// `column!()`.
    pub column: u32,
    /// `on_in_progress`.
    pub on_in_progress: OnInProgress,
    /// `on_unknown`.
    pub on_unknown: OnUnknown,
    /// `on_missing_key`.
    pub on_missing_key: OnMissingKey,
    /// `lease`, if not the engine's.
    pub lease: Option<Duration>,
    /// `max_run`, if not the engine's.
    pub max_run: Option<Duration>,
}

/// Where an operation's name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// `name = "…"`.
    Given(&'static str),
    /// Crate, module path and function.
    Derived,
}

/// Returns the type name of a closure made in a function's body: the path of
/// that function, as far as it can be told apart from others.
#[must_use]
pub fn path_of<T: ?Sized>(_: &T) -> &'static str {
    std::any::type_name::<T>()
}

/// Says whether generic arguments are none, or lifetimes, which tell no
/// instances apart: `<'_, '_>`.
fn only_lifetimes(arguments: &str) -> bool {
    let inside = arguments
        .trim_start_matches("::")
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'));
    arguments.is_empty()
        || inside.is_some_and(|inside| {
            inside
                .split(',')
                .all(|argument| argument.trim().starts_with('\''))
        })
}

impl Site {
    /// Returns whether a function at `path` may use the name derived from its
    /// module and identifier: a nested, associated or generic one would share
    /// it with others.
    pub(crate) fn is_free_function(&self, path: &str) -> bool {
        // `module_path!` keeps the `r#` of a raw identifier, a type's name does not.
        let module = match self.module.contains("r#") {
            true => Cow::Owned(self.module.replace("r#", "")),
            false => Cow::Borrowed(self.module),
        };
        path.trim_end_matches("::{{closure}}")
            .strip_prefix(&*module)
            .and_then(|rest| rest.strip_prefix("::"))
            .and_then(|rest| rest.strip_prefix(self.function))
            .is_some_and(only_lifetimes)
    }

    /// Returns the derived name.
    pub(crate) fn derived_name(&self) -> String {
        format!("{}::{}", self.module, self.function)
    }
}
