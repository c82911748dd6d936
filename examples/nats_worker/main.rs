//! A NATS `JetStream` consumer whose messages each take effect once, whatever is killed.
//!
//! **Shows** the same transaction ([`broker/book.rs`](../broker/book.rs)): a payment is booked, an
//! e-mail is left in an outbox, and the record of `idem` commits with both; the message is
//! acknowledged only after that ([`consume`]). A second operation with a key of its own sends the
//! e-mail ([`broker/mail.rs`](../broker/mail.rs)). A consumer that dies between commit and
//! acknowledgement gets the message again, and acknowledges it without booking it again. The same as
//! [`rabbit_worker`](../rabbit_worker/main.rs), except for the broker.
//!
//! **Run** the demo, on `SQLite` in a temporary folder:
//!
//! ```text
//! eval "$(scripts/stores up nats)"
//! cargo run --example nats_worker --features brokers
//! scripts/stores down
//! ```
//!
//! or on Postgres, where consumers run bodies at the same time (it makes the tables
//! `broker_payments` and `broker_outbox` anew there):
//!
//! ```text
//! cargo run --example nats_worker --features brokers,servers -- --store postgres://user@localhost/books
//! ```
//!
//! It publishes 1,000 payments, each one to five times, to three consumers. One of them is killed
//! with SIGKILL ten times: five times in the body, five times between commit and acknowledgement.
//!
//! **Expected output** (exit code 0 only if every line holds; a star is a number that differs):
//!
//! ```text
//! 1000 payments, published 3000 times
//! a consumer was killed 5 times in the body, 5 times between commit and ack
//! * deliveries, * of them duplicates, * told to come again
//! * bodies ran, 1000 to their end
//! 1000 effects, for 1000 payments
//! 1000 e-mails, for 1000 payments
//! 0 acknowledged before everybody was done with it, 0 parked
//! 0 messages left
//! ```

#[path = "../broker/mod.rs"]
mod broker;
mod consume;
mod queue;

use std::process::ExitCode;

use broker::args::{Command, USAGE};
use broker::{demo, mail};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(filter)
        .init();

    let command = Command::parse(std::env::args().skip(1), "IDEM_TEST_NATS_URL");
    let ended = match command {
        Ok(Command::Demo(options)) => demo::run(options, queue::Nats::connect).await,
        Ok(Command::Consume(options)) => Box::pin(consume::run(options)).await,
        Ok(Command::Mail(options)) => mail::run(options).await,
        Ok(Command::Help) => {
            println!("{USAGE}");
            Ok(())
        }
        Err(mistake) => {
            eprintln!("{mistake}\n\n{USAGE}");
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
