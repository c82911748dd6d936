//! For tests: a clock that moves when told to, and the conformance suite of
//! stores. No semver promise.

pub mod conformance;

pub use crate::clock::ManualClock;
