//! Collects the mistakes of one expansion, so that all of them show at once.

use proc_macro2::Span;
use syn::Error;

/// The mistakes found so far. Must be consumed by [`Diagnostics::finish`]: a
/// forgotten error would be a function that silently is not protected.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    errors: Vec<Error>,
    finished: bool,
}

impl Diagnostics {
    /// Records one mistake at `span`.
    pub(crate) fn report(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(Error::new(span, message));
    }

    /// Records an error that a parser returned.
    pub(crate) fn push(&mut self, error: Error) {
        self.errors.extend(error);
    }

    /// Keeps the value of a fallible step, or records why there is none.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Gives the value back if nothing was recorded, and every error otherwise.
    pub(crate) fn finish<T>(mut self, value: Option<T>) -> Result<T, Vec<Error>> {
        self.finished = true;
        match value {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ if self.errors.is_empty() => Err(vec![Error::new(
                Span::call_site(),
                "`#[idempotent]` could not read this function; please report this as a bug",
            )]),
            _ => Err(std::mem::take(&mut self.errors)),
        }
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        debug_assert!(
            self.finished || std::thread::panicking(),
            "diagnostics dropped without being reported"
        );
    }
}
