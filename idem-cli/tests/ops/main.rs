//! Proves that the page for operators says what is stuck and why, that nobody
//! comes in or changes anything who may not, and that no key, argument or answer
//! is on it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(test)]
mod entrance;
#[cfg(test)]
mod forgery;
#[cfg(test)]
mod mounted;
#[cfg(test)]
mod settling;
#[cfg(test)]
mod shown;
#[cfg(test)]
mod silent;
mod world;
