//! A checkout that charges once, whatever the network does.
//!
//! **Shows** the whole of the main job: an axum server whose service function ([`charge`]) is
//! annotated with `#[idempotent]`, two processes of it on one `SQLite` file, and a payment gateway
//! that is slow, loses answers, or sees its callers killed. Read `charge.rs` first, then
//! `http.rs`, then `serve.rs`; the rest is the gateway and the demo.
//!
//! **Run** the demo; it needs no services and no network, and takes about ten seconds:
//!
//! ```text
//! cargo run --example checkout
//! ```
//!
//! or the parts by hand, each in a terminal of its own:
//!
//! ```text
//! cargo run --example checkout -- gateway --addr 127.0.0.1:4000
//! cargo run --example checkout -- serve --addr 127.0.0.1:4001 --gateway http://127.0.0.1:4000 --store sqlite://shop.db
//! cargo run --example checkout -- serve --addr 127.0.0.1:4002 --gateway http://127.0.0.1:4000 --store sqlite://shop.db
//!
//! curl -i http://127.0.0.1:4001/checkout -H 'Idempotency-Key: k1' --json '{"order_id": "o1", "amount": 4200, "currency": "EUR"}'
//! curl -i http://127.0.0.1:4002/checkout -H 'Idempotency-Key: k1' --json '{"order_id": "o1", "amount": 4200, "currency": "EUR"}'
//! curl -s http://127.0.0.1:4000/charges
//! ```
//!
//! **Expected output** of the demo (exit code 0 only if every line says `ok`):
//!
//! ```text
//! one gateway, two servers, one SQLite file
//!
//! ok      20 identical requests at once, two servers  20 equal answers, 1 charge
//! ok      client times out, charge goes on, retry     the retry got the answer that was missed, 1 charge
//! ok      gateway's answer is lost, retry             409 outcome-unknown, then 201 by asking the gateway, 1 charge
//! ok      same key, another amount                    422 key-reused, 1 charge
//! ok      two customers, the same key                 each has an order of their own, 2 charges
//! ok      kill -9 after the charge, retry elsewhere   201 with the dead server's charge, 1 charge
//! ok      honest loss: retry after ttl and sweep      ran again; the gateway, not idem, prevented a 2nd charge
//!
//! requests sent      35
//! charges made        8
//! answers replayed   23
//!
//! 5.5 s
//! ```

mod args;
mod charge;
mod demo;
mod gateway;
mod gateway_client;
mod http;
mod serve;

use std::process::ExitCode;

use args::Command;
use tracing_subscriber::EnvFilter;

/// Whatever ends a process of this example: there is nobody left to tell the cases apart.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(filter)
        .init();

    let ended = match Command::parse(std::env::args().skip(1)) {
        Ok(Command::Demo) => demo::run().await,
        Ok(Command::Gateway { addr }) => gateway::run(&addr).await,
        Ok(Command::Serve(options)) => serve::run(options).await,
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

/// Ends when this process is asked to stop: Ctrl-C, or the signal that orchestrators send.
async fn stop_signal() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signals) => drop(signals.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}
