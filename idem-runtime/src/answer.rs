//! What a function must return, and what is kept of it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::codec::Codec;
use crate::engine::driver::{self, Ops, OpsInPlace, OpsWithin};
use crate::error::Error;
use crate::policy::Disposition;

/// The most of an error's text that is kept, in bytes.
const MAX_TEXT: usize = 4096;

/// The return type of an annotated function: `Result<T, E>`, with every bound
/// that the codec `C`, the error policy `P` and the error mapping `M` ask for.
///
/// One bound on the whole type gives one message per mistake.
#[diagnostic::on_unimplemented(
    message = "an `#[idempotent]` function returns `Result<T, E>`, not `{Self}`",
    label = "must be a `Result<T, E>` with `E: From<idem::Error>`",
    note = "an answer of the engine's own, such as \"still running\", must have somewhere to go: return `Result<{Self}, E>`"
)]
pub trait Answer<C, P, M>: Sized + Send + 'static {
    #[doc(hidden)]
    fn ops(policy: P, map: M) -> Ops<Self>;
    #[doc(hidden)]
    fn ops_in_place(policy: P, map: M) -> OpsInPlace<Self>;
    #[doc(hidden)]
    fn ops_within(policy: P, map: M) -> OpsWithin<Self>;
}

// Recommended on purpose: hidden, every mistake in `T` or `E` would read "not a
// `Result`".
impl<T, E, C, P, M> Answer<C, P, M> for Result<T, E>
where
    T: Sendable,
    E: Sendable,
    P: ErrorPolicy<E>,
    M: ErrorMapping<E>,
    C: Codec<T, P::Kept>,
{
    fn ops(policy: P, map: M) -> Ops<Self> {
        driver::ops::<T, E, C, P, M>(policy, map)
    }

    fn ops_in_place(policy: P, map: M) -> OpsInPlace<Self> {
        driver::ops_in_place::<T, E, C, P, M>(policy, map)
    }

    fn ops_within(policy: P, map: M) -> OpsWithin<Self> {
        driver::ops_within::<T, E, C, P, M>(policy, map)
    }
}

/// Part of an answer: it moves between tasks.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an answer",
    label = "must be `Send + 'static`",
    note = "the body runs in a task of its own, and its answer comes back from there"
)]
pub trait Sendable: Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Send + 'static> Sendable for T {}

/// An answer that JSON can store and give back.
#[diagnostic::on_unimplemented(
    message = "the answer `{Self}` cannot be recorded",
    label = "must be `serde::Serialize` and `serde::de::DeserializeOwned`",
    note = "add `#[derive(serde::Serialize, serde::Deserialize)]` to `{Self}`, or choose another `codec`"
)]
pub trait Recordable: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Recordable for T {}

/// An error that JSON can store and give back.
#[diagnostic::on_unimplemented(
    message = "the error `{Self}` cannot be recorded",
    label = "must be `serde::Serialize` and `serde::de::DeserializeOwned`",
    note = "to keep only its text, write `on_error = store_text`",
    note = "to record it as it is, derive `serde::Serialize` and `serde::Deserialize` for `{Self}`",
    note = "to leave the outcome unknown after an error, write `on_error = unknown`",
    note = "to decide by its value, write `on_error = classify(path)` or `classify(path, store_text)`",
    note = "only if an `Err` proves that nothing happened, write `on_error = release`"
)]
pub trait RecordableError: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> RecordableError for T {}

/// How an error of the engine's own becomes the function's.
pub trait ErrorMapping<E>: Send + Sync + 'static {
    /// Converts.
    fn map(&self, error: Error) -> E;
}

/// By `E: From<idem::Error>`.
#[derive(Debug, Clone, Copy)]
pub struct FromError;

/// By the function of `map_err = path`.
#[derive(Debug, Clone, Copy)]
pub struct MapError<F>(pub F);

/// An error type that can carry what the engine has to say.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry an error of the engine",
    label = "must be `From<idem::Error>`",
    note = "write `impl From<idem::Error> for {Self}`, or name a function with `map_err = path`"
)]
pub trait CarriesError: Sized {
    #[doc(hidden)]
    fn carry(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> CarriesError for E {
    fn carry(error: Error) -> Self {
        error.into()
    }
}

impl<E: CarriesError> ErrorMapping<E> for FromError {
    fn map(&self, error: Error) -> E {
        E::carry(error)
    }
}

impl<E, F: Fn(Error) -> E + Send + Sync + 'static> ErrorMapping<E> for MapError<F> {
    fn map(&self, error: Error) -> E {
        (self.0)(error)
    }
}

/// What is kept of an `Err` that is recorded.
#[derive(Debug)]
pub enum Keep<E, K> {
    /// The error itself.
    Whole(K),
    /// Something else; the first caller gets its own error.
    Part(K, E),
    /// Nothing: this policy records no error.
    Nothing(E),
}

/// What happens to a record when its body returns `Err`.
pub trait ErrorPolicy<E>: Send + Sync + 'static {
    /// What is kept of an error.
    type Kept: Send + 'static;

    /// Whether [`sort`](Self::sort) decides by the error's value, also when an
    /// error of the engine's own came up inside the body.
    const DECIDES: bool = false;

    /// Whether only an error's text is kept, which is stored as such: a later
    /// deploy that keeps whole errors must not read it as one.
    const TEXT: bool = false;

    /// Sorts an error.
    fn sort(&self, error: &E) -> Disposition;

    /// Splits an error into what is kept and what the first caller gets.
    fn keep(&self, error: E) -> Keep<E, Self::Kept>;

    /// Makes an error from what was kept.
    fn restore<M: ErrorMapping<E>>(kept: Self::Kept, map: &M) -> E;
}

/// The error policies, as `on_error` names them.
pub mod policy {
    /// `store`: the error is recorded and replayed as the same value.
    #[derive(Debug, Clone, Copy)]
    pub struct Store;
    /// `store_text`: its text is recorded and replayed as `Error::Failed`.
    #[derive(Debug, Clone, Copy)]
    pub struct StoreText;
    /// `unknown`: the outcome is unknown after an error.
    #[derive(Debug, Clone, Copy)]
    pub struct Unknown;
    /// `release`: an error proves that nothing happened.
    #[derive(Debug, Clone, Copy)]
    pub struct Release;
    /// `classify(path)`: the function decides.
    #[derive(Debug, Clone, Copy)]
    pub struct Classify<F>(pub F);
    /// `classify(path, store_text)`: the function decides, the text is kept.
    #[derive(Debug, Clone, Copy)]
    pub struct ClassifyText<F>(pub F);
}

/// The text kept of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text(String);

impl Text {
    pub(crate) fn of(error: &impl std::fmt::Display) -> Self {
        let mut text = error.to_string();
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        Self(text)
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    fn restore<E>(self, map: &impl ErrorMapping<E>) -> E {
        map.map(Error::Failed { message: self.0 })
    }
}

/// Nothing is kept: there is no such value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Never {}

impl<E: Sendable> ErrorPolicy<E> for policy::Store {
    type Kept = E;

    fn sort(&self, _: &E) -> Disposition {
        Disposition::Store
    }

    fn keep(&self, error: E) -> Keep<E, E> {
        Keep::Whole(error)
    }

    fn restore<M: ErrorMapping<E>>(kept: E, _: &M) -> E {
        kept
    }
}

impl<E: std::fmt::Display + Sendable> ErrorPolicy<E> for policy::StoreText {
    type Kept = Text;
    const TEXT: bool = true;

    fn sort(&self, _: &E) -> Disposition {
        Disposition::Store
    }

    fn keep(&self, error: E) -> Keep<E, Text> {
        Keep::Part(Text::of(&error), error)
    }

    fn restore<M: ErrorMapping<E>>(kept: Text, map: &M) -> E {
        kept.restore(map)
    }
}

macro_rules! keeps_nothing {
    ($policy:ty, $disposition:ident) => {
        impl<E: Sendable> ErrorPolicy<E> for $policy {
            type Kept = Never;

            fn sort(&self, _: &E) -> Disposition {
                Disposition::$disposition
            }

            fn keep(&self, error: E) -> Keep<E, Never> {
                Keep::Nothing(error)
            }

            fn restore<M: ErrorMapping<E>>(kept: Never, _: &M) -> E {
                match kept {}
            }
        }
    };
}

keeps_nothing!(policy::Unknown, Unknown);
keeps_nothing!(policy::Release, Release);

impl<E: Sendable, F> ErrorPolicy<E> for policy::Classify<F>
where
    F: Fn(&E) -> Disposition + Send + Sync + 'static,
{
    type Kept = E;
    const DECIDES: bool = true;

    fn sort(&self, error: &E) -> Disposition {
        (self.0)(error)
    }

    fn keep(&self, error: E) -> Keep<E, E> {
        Keep::Whole(error)
    }

    fn restore<M: ErrorMapping<E>>(kept: E, _: &M) -> E {
        kept
    }
}

impl<E: std::fmt::Display + Sendable, F> ErrorPolicy<E> for policy::ClassifyText<F>
where
    F: Fn(&E) -> Disposition + Send + Sync + 'static,
{
    type Kept = Text;
    const DECIDES: bool = true;
    const TEXT: bool = true;

    fn sort(&self, error: &E) -> Disposition {
        (self.0)(error)
    }

    fn keep(&self, error: E) -> Keep<E, Text> {
        Keep::Part(Text::of(&error), error)
    }

    fn restore<M: ErrorMapping<E>>(kept: Text, map: &M) -> E {
        kept.restore(map)
    }
}

/// A parameter that can move into the body's task.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot move into a task of its own",
    label = "must be `Send + 'static`",
    note = "under `on_cancel = finish` the body goes on when its caller is dropped, so it owns what it uses; `on_cancel = abandon` runs it in place"
)]
pub trait Movable {}

#[diagnostic::do_not_recommend]
impl<T: Send + 'static + ?Sized> Movable for T {}
