//! Proves that every store keeps the contract: the conformance suite, run on
//! each; what only one of them can get wrong; and that random calls get the same
//! replies from all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod at_hand;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod corrupt;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod script;
#[cfg(test)]
mod sqlite;
#[cfg(test)]
mod sqlite_faults;
#[cfg(test)]
mod sweeping;
#[cfg(test)]
mod tiered;
#[cfg(test)]
mod traffic;
