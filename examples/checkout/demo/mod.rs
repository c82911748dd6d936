//! The demo: starts a gateway and servers as processes of their own, then does on purpose, as a
//! client, what goes wrong in production. Each scenario is one function in `scenarios.rs`.

mod client;
mod process;
mod scenarios;

use std::path::Path;

use tokio::time::Instant;

use self::client::Client;
use self::process::Process;
use self::scenarios::Finding;
use crate::{BoxError, stop_signal};

/// Everything that runs during the demo. All of it ends when this is dropped.
struct World {
    client: Client,
    gateway: Process,
    server_a: Process,
    server_b: Process,
    store: String,
    folder: tempfile::TempDir,
}

impl World {
    async fn start() -> Result<Self, BoxError> {
        let folder = tempfile::Builder::new().prefix("checkout-").tempdir()?;
        let store = format!("sqlite://{}", folder.path().join("shop.db").display());
        let gateway = Process::start(
            "gateway",
            &["gateway", "--addr", "127.0.0.1:0"],
            folder.path(),
        )
        .await?;
        let server_a = start_server("server-a", &gateway, &store, &[], folder.path()).await?;
        let server_b = start_server("server-b", &gateway, &store, &[], folder.path()).await?;
        let client = Client::new(gateway.url())?;
        Ok(Self {
            client,
            gateway,
            server_a,
            server_b,
            store,
            folder,
        })
    }

    /// A third server on the same store, with options of its own.
    async fn start_server_c(&self, options: &[&str]) -> Result<Process, BoxError> {
        start_server(
            "server-c",
            &self.gateway,
            &self.store,
            options,
            self.folder.path(),
        )
        .await
    }
}

async fn start_server(
    name: &str,
    gateway: &Process,
    store: &str,
    options: &[&str],
    folder: &Path,
) -> Result<Process, BoxError> {
    let mut words = vec![
        "serve",
        "--addr",
        "127.0.0.1:0",
        "--gateway",
        gateway.url(),
        "--store",
        store,
    ];
    words.extend(options);
    Process::start(name, &words, folder).await
}

pub(crate) async fn run() -> Result<(), BoxError> {
    tokio::select! {
        ended = play() => ended,
        () = stop_signal() => Err("interrupted".into()),
    }
}

async fn play() -> Result<(), BoxError> {
    let started = Instant::now();
    let mut world = World::start().await?;
    println!("one gateway, two servers, one SQLite file\n");

    let mut report = Report::default();
    report.line(
        "20 identical requests at once, two servers",
        scenarios::crowd(&world).await,
    );
    report.line(
        "client times out, charge goes on, retry",
        scenarios::impatient(&world).await,
    );
    report.line(
        "gateway's answer is lost, retry",
        scenarios::lost_answer(&world).await,
    );
    report.line(
        "same key, another amount",
        scenarios::other_amount(&world).await,
    );
    report.line(
        "two customers, the same key",
        scenarios::shared_key(&world).await,
    );
    report.line(
        "kill -9 after the charge, retry elsewhere",
        scenarios::killed(&mut world).await,
    );
    report.line(
        "honest loss: retry after ttl and sweep",
        scenarios::too_late(&world).await,
    );

    let charges = world.client.all_charges().await?.len();
    println!();
    println!("requests sent    {:>4}", world.client.sent());
    println!("charges made     {charges:>4}");
    println!("answers replayed {:>4}", report.replayed);
    println!("\n{:.1} s", started.elapsed().as_secs_f64());

    if report.failed == 0 {
        return Ok(());
    }
    let logs = world.folder.keep();
    Err(format!(
        "{} of {} failed; logs: {}",
        report.failed,
        report.lines,
        logs.display()
    )
    .into())
}

/// What is known so far.
#[derive(Default)]
struct Report {
    lines: usize,
    failed: usize,
    replayed: usize,
}

impl Report {
    fn line(&mut self, what: &str, found: Result<Finding, BoxError>) {
        self.lines += 1;
        match found {
            Ok(Finding { said, replayed }) => {
                self.replayed += replayed;
                println!("ok      {what:<44}{said}");
            }
            Err(error) => {
                self.failed += 1;
                println!("FAILED  {what:<44}{error}");
            }
        }
    }
}
