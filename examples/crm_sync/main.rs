//! An import that can be killed at any moment and goes on where it was.
//!
//! **Shows** a sync job: customers come from a file, each is applied by a function that is
//! annotated with `#[idempotent]` ([`apply`]), 16 at a time with `idem::batch`. The job keeps no
//! cursor of its own: after a crash it asks `unseen` which of the 8,000 are still to be done.
//! Updates that then come out of order are ordered by `version`: an older one runs no body.
//! Read `apply.rs` first, then `import.rs`; the rest is the file, the database and the demo.
//!
//! **Run** the demo; it needs no services and takes a few seconds:
//!
//! ```text
//! cargo run --example crm_sync
//! ```
//!
//! on Postgres (it makes the tables `crm_sync_customers` and `crm_sync_bodies` anew there):
//!
//! ```text
//! cargo run --example crm_sync --features servers -- --store postgres://user@localhost/crm
//! ```
//!
//! or an import of a file of your own, as often as you like:
//!
//! ```text
//! cargo run --example crm_sync -- import --file customers.jsonl --store sqlite://idem.db --crm sqlite://crm.db
//! ```
//!
//! **Expected output** of the demo (exit code 0 only if every line holds):
//!
//! ```text
//! 8000 customers in the file
//! killed with SIGKILL after the record of number 7200
//! 7200 done, 800 to do, found in 8 round trips
//! 800 bodies ran after the restart
//! 8000 rows, none twice
//! 400 updates, the newest first: 100 customers at their newest version, 0 set back
//! 100 bodies ran for them, 200 updates were stale
//! ```

mod apply;
mod args;
mod crm;
mod customer;
mod demo;
mod import;
mod progress;
mod updates;

use std::process::ExitCode;

use args::Command;
use tracing_subscriber::EnvFilter;

/// Whatever ends a process of this example: there is nobody left to tell the cases apart.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(filter)
        .init();

    let ended = match Command::parse(std::env::args().skip(1)) {
        Ok(Command::Demo { store }) => demo::run(store).await,
        Ok(Command::Import(options)) => import::run(options).await,
        Ok(Command::Help) => {
            println!("{}", args::USAGE);
            Ok(())
        }
        Err(mistake) => {
            eprintln!("{mistake}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
