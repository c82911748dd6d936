//! Proves with real processes, killed, paused, told to stop or
//! racing each other, and with a full disk, that
//! no default runs a body twice, and that each policy does what its name says.
//!
//! This binary re-runs itself as the process to kill: `crash victim …`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod full;
mod kill;
mod ledger;
mod page;
mod partner;
mod place;
mod race;
mod shutdown;
mod steps;
mod transaction;
mod versions;
mod victim;
mod zombie;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("victim") => victim::die(&args.collect::<Vec<_>>()),
        Some("tx-victim") => transaction::die(&args.collect::<Vec<_>>()),
        Some("drainer") => shutdown::run(&args.collect::<Vec<_>>()),
        Some("stepper") => steps::run(&args.collect::<Vec<_>>()),
        Some("full") => full::run(&args.collect::<Vec<_>>()),
        Some("racer") => race::run(&args.collect::<Vec<_>>()),
        Some("syncer") => versions::run(&args.collect::<Vec<_>>()),
        _ => {
            let mut trials: Vec<Trial> = kill::cases().collect();
            trials.extend(transaction::cases());
            trials.extend(zombie::cases());
            trials.extend(race::cases());
            trials.extend(versions::cases());
            trials.extend(shutdown::cases());
            trials.extend(full::cases());
            trials.extend(steps::cases());
            trials.push(page::case(&trials));
            libtest_mimic::run(&Arguments::from_args(), trials).exit();
        }
    }
}
