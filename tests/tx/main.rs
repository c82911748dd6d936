//! Proves that reservation, the caller's own rows and the recorded answer commit
//! or roll back together, on every SQL database. With the feature `servers`,
//! `scripts/stores` starts the servers; without their URLs these tests fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(test)]
mod contention;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod guards;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod misuse;
#[cfg(test)]
mod operation;
#[cfg(test)]
mod records;
#[cfg(test)]
mod statements;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod world;
