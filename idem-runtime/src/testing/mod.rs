//! For tests: a testbed for annotated functions, a clock that moves when told
//! to, and the conformance suite of stores. No semver promise.
//!
//! | to test | start at |
//! |---|---|
//! | an annotated function | [`Testbed`] |
//! | how a call got its answer | [`assert_executed`], [`assert_replayed`], [`assert_how`] |
//! | a store | [`conformance`] |

pub mod conformance;
#[doc(hidden)]
pub mod parts;
mod testbed;

pub use self::testbed::{TestClock, Testbed, crash_here};
pub use crate::clock::ManualClock;
pub use crate::engine::rehearsal::CrashPoint;
#[doc(inline)]
pub use crate::{
    __assert_executed as assert_executed, __assert_how as assert_how,
    __assert_replayed as assert_replayed,
};

#[doc(hidden)]
pub use self::testbed::expect_how;

#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../../../docs/compile-tests.md")]
struct CompileTestsGuide;
