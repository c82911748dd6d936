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

#[cfg(test)]
mod flights;
#[cfg(test)]
mod sync;

#[cfg(test)]
#[path = "../../idem-runtime/src/singleflight.rs"]
mod singleflight;

#[cfg(test)]
mod identity {
    pub(crate) use idem::identity::{Fingerprint, RecordId};
}

#[cfg(test)]
mod record {
    pub(crate) use idem::record::{Recorded, VersionBytes};
}
