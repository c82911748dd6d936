//! Proves the protocol by exhaustion: every state that one key can reach with a
//! few callers, lost and late messages, crashes and lapsed leases keeps what is
//! promised. The decisions are those of `idem::transition` itself; only callers
//! and the network are modelled. A checker that cannot fail proves nothing, so
//! each guard is also broken once, and the broken protocol must be caught.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(test)]
mod broken;
#[cfg(test)]
mod caller;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod server;
#[cfg(test)]
mod world;
