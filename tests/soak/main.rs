//! Everything at once, for as long as one likes: every store, two processes on
//! each, callers that repeat themselves, go away and lie about their payload,
//! bodies that fail, panic and outlast their lease, while processes are killed
//! and paused and their connections cut. On SQL databases some calls are in their
//! caller's transaction. An auditor then reads what the bodies
//! did and what the callers were told, and nothing else.
//!
//! `scripts/soak [minutes]` starts the stores and this. `--seed` repeats the
//! choices of an earlier run; what the operating system chooses, nothing does.
//!
//! This binary re-runs itself as the processes to kill: `soak worker …`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod audit;
mod dice;
mod director;
mod journal;
#[path = "../crash/place.rs"]
mod place;
#[path = "../servers/proxy.rs"]
#[allow(dead_code, reason = "other tests plan their cuts")]
mod proxy;
mod within;
mod worker;
mod workload;

use std::time::Duration;

/// The leases of every engine here, as `place` sets them.
mod victim {
    use std::time::Duration;

    pub(crate) const LEASE: Duration = Duration::from_millis(500);
    pub(crate) const GRACE: Duration = Duration::from_millis(100);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "worker") {
        return worker::run(&args[1..]);
    }
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        Some(args.get(at + 1).expect("a value").clone())
    };
    let seconds = value("--seconds").map_or(20, |text| text.parse().expect("seconds"));
    let seed = value("--seed").map_or_else(dice::new_seed, |text| text.parse().expect("a seed"));
    let only = value("--only");
    let passed = director::soak(Duration::from_secs(seconds), seed, only.as_deref());
    std::process::exit(i32::from(!passed));
}
