//! Proves what holds on every schedule of the concurrent parts, by drawing
//! thousands of them. The sources are those of the library, compiled here once
//! more with other primitives under `crate::sync`. A failure prints the schedule
//! that led to it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    dead_code,
    unexpected_cfgs,
    unreachable_pub,
    reason = "the library's sources, of which only a part is used"
)]

#[cfg(test)]
use self::names::{backoff, clock, error, identity, policy, record, store, telemetry};

#[cfg(test)]
mod engine;
#[cfg(test)]
mod flights;
#[cfg(test)]
mod goodbyes;
#[cfg(test)]
mod names;
#[cfg(test)]
mod sync;

#[cfg(test)]
#[path = "../../idem-runtime/src/panic.rs"]
mod panic;
#[cfg(test)]
#[path = "../../idem-runtime/src/singleflight.rs"]
mod singleflight;
