//! Proves that stores on database servers keep the contract, and what only a
//! server can get wrong, and that random calls get the same replies as in memory. `scripts/stores` starts the servers; without their
//! URLs these tests fail.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod clocks;
#[cfg(test)]
mod contention;
#[cfg(test)]
mod demoted;
#[cfg(test)]
mod findings;
#[cfg(test)]
mod guards;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod losses;
#[cfg(test)]
mod mysql;
#[cfg(test)]
mod network;
#[cfg(test)]
mod operators;
#[cfg(test)]
#[path = "../engine/orders.rs"]
mod orders;
#[cfg(test)]
mod place;
#[cfg(test)]
mod plans;
#[cfg(test)]
#[path = "../engine/polled.rs"]
#[allow(dead_code, reason = "another test rings the bell itself")]
mod polled;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod private;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod records;
#[cfg(test)]
mod redis;
#[cfg(test)]
mod restart;
#[cfg(test)]
#[path = "../stores/script.rs"]
mod script;
#[cfg(test)]
mod session;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod sweeping;
#[cfg(test)]
mod tiered;
#[cfg(test)]
mod together;
#[cfg(test)]
#[path = "../stores/traffic.rs"]
mod traffic;
#[cfg(test)]
mod trips;
#[cfg(test)]
mod versions;

/// Returns the URL of a server, which must be there.
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test is told where its server is"
)]
fn url(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: eval \"$(scripts/stores up)\""))
}
