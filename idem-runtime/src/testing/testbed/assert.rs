//! Assertions about how a call got its answer.

use std::fmt::Debug;

use crate::outcome::{How, Outcome};

/// Awaits a call, asserts how it got its answer, and gives the answer back.
///
/// `assert_how!(How, call)`, where `How` is a variant of [`How`](crate::How)
/// and the call is a future whose answer is `Debug`. It looks at the last
/// annotated call that the future itself awaits.
///
/// # Panics
/// If the answer came about otherwise, or there was no call.
///
/// # Examples
/// ```
/// # use idem::testing::{Testbed, assert_how};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// #[idem::idempotent(name = "greet", key = name, ttl = "1h", on_missing_key = run)]
/// async fn greet(name: Option<String>) -> Result<String, idem::Error> {
///     Ok(name.unwrap_or_default())
/// }
///
/// let t = Testbed::new().await;
/// let answer = assert_how!(Unprotected, t.scope(greet(None)));
/// assert_eq!(answer.as_deref(), Ok(""));
/// # }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __assert_how {
    ($how:ident, $call:expr $(,)?) => {{
        let (answer, outcome) = $crate::observe(::std::boxed::Box::pin($call)).await;
        $crate::testing::expect_how(
            &answer,
            outcome,
            $crate::How::$how,
            ::core::stringify!($call),
        );
        answer
    }};
}

/// Awaits a call, asserts that its body ran in it, and gives the answer back.
///
/// # Panics
/// As [`assert_how`](crate::testing::assert_how).
///
/// # Examples
/// ```
/// # use idem::testing::{Testbed, assert_executed};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let t = Testbed::new().await;
/// # let ttl = std::time::Duration::from_secs(60);
/// let call = t.engine().call("greet", &"ada", ttl).run(async { Ok::<_, idem::Error>(1) });
/// assert_eq!(assert_executed!(call), Ok(1));
/// # }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __assert_executed {
    ($call:expr $(,)?) => {
        $crate::testing::assert_how!(Executed, $call)
    };
}

/// Awaits a call, asserts that it got the answer that the store had, and gives
/// it back.
///
/// A call that waited for a run in the same process is not replayed but
/// coalesced: `assert_how!(Coalesced, …)`.
///
/// # Panics
/// As [`assert_how`](crate::testing::assert_how).
///
/// # Examples
/// ```should_panic
/// # use idem::testing::{Testbed, assert_replayed};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let t = Testbed::new().await;
/// # let ttl = std::time::Duration::from_secs(60);
/// let call = t.engine().call("greet", &"ada", ttl).run(async { Ok::<_, idem::Error>(1) });
/// assert_replayed!(call); // panics: it is the first call
/// # }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __assert_replayed {
    ($call:expr $(,)?) => {
        $crate::testing::assert_how!(Replayed, $call)
    };
}

/// What the macros here expand to.
#[doc(hidden)]
#[track_caller]
pub fn expect_how<A: Debug>(answer: &A, outcome: Option<Outcome>, expected: How, call: &str) {
    match outcome.map(|outcome| outcome.how) {
        Some(how) if how == expected => {}
        Some(how) => panic!(
            "`{call}` was to be {}, and was {}: {answer:?}",
            expected.name(),
            how.name()
        ),
        None => panic!("`{call}` made no call that idem knows of: {answer:?}"),
    }
}
