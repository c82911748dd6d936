//! An annotated handler, and what it did, for Prometheus.
//!
//! **Shows** where metrics go: an exporter's recorder is installed first, then the engine is built,
//! and `/metrics` gives its text. A task counts what is unknown in the store once a minute.
//! `docs/metrics.md` says what each metric means; `docs/alerts.yaml` and `docs/grafana-dashboard.json`
//! read this endpoint.
//!
//! **Run** it; it needs no services and no network. It calls itself, prints what Prometheus would
//! get, and checks it:
//!
//! ```text
//! cargo run --example metrics_endpoint --features metrics-endpoint
//! ```
//!
//! or lets Prometheus come, until it is stopped:
//!
//! ```text
//! cargo run --example metrics_endpoint --features metrics-endpoint -- 127.0.0.1:9000
//! curl -i http://127.0.0.1:9000/charges -H 'Idempotency-Key: k1' --json '{"amount": 4200}'
//! curl -s http://127.0.0.1:9000/metrics
//! ```
//!
//! **Expected output**: the text, which ends with these lines (exit code 0 only if all are there):
//!
//! ```text
//! found  idem_calls_total{operation="charges.create",outcome="executed"} 1
//! found  idem_calls_total{operation="charges.create",outcome="replayed"} 2
//! found  idem_calls_total{operation="charges.create",outcome="mismatch"} 1
//! found  idem_attempts_total{operation="charges.create",end="completed"} 1
//! found  idem_attempts_held 0
//! found  idem_unknown 0
//! found  idem_store_seconds_count{step="reserve"} 4
//! ```

mod serve;

use std::process::ExitCode;
use std::time::Duration;

use idem::Engine;
use idem::store::MemoryStore;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use reqwest::Client;
use tokio::net::TcpListener;

/// Whatever ends this example: there is nobody left to tell the cases apart.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// From half a millisecond, which a local store takes, to as long as calls wait.
const BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0,
];

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("metrics_endpoint: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    // First the recorder, which then gets the descriptions as well.
    let metrics = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
        .install_recorder()?;
    let engine = Engine::builder(MemoryStore::new()).namespace("shop");
    let engine = engine.build().await?;
    tokio::spawn(observe(engine.clone(), metrics.clone()));

    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let app = serve::app(&engine, metrics);
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    if address.is_some() {
        println!("{base}/metrics");
        return Ok(server.await??);
    }
    engine.observe_store().await?;
    check(&base).await
}

/// Counts what stands in the store, once a minute.
async fn observe(engine: Engine, metrics: PrometheusHandle) -> ! {
    let mut minutes = tokio::time::interval(Duration::from_secs(60));
    loop {
        minutes.tick().await;
        // If it fails, that is in the metrics, too.
        engine.observe_store().await.ok();
        // The exporter keeps samples until it is asked or told.
        metrics.run_upkeep();
    }
}

/// Calls the handler in each way, and looks for what that must have counted.
async fn check(base: &str) -> Result<(), BoxError> {
    let client = Client::new();
    for (amount, status) in [(4200, 201), (4200, 201), (4200, 201), (9900, 422)] {
        let request = client
            .post(format!("{base}/charges"))
            .header("idempotency-key", "k1-of-this-example")
            .json(&serde_json::json!({ "amount": amount }));
        let got = request.send().await?.status();
        if got != status {
            return Err(format!("{got} instead of {status}").into());
        }
    }
    let text = client.get(format!("{base}/metrics")).send().await?;
    let text = text.error_for_status()?.text().await?;
    println!("{text}");
    for line in [
        r#"idem_calls_total{operation="charges.create",outcome="executed"} 1"#,
        r#"idem_calls_total{operation="charges.create",outcome="replayed"} 2"#,
        r#"idem_calls_total{operation="charges.create",outcome="mismatch"} 1"#,
        r#"idem_attempts_total{operation="charges.create",end="completed"} 1"#,
        "idem_attempts_held 0",
        "idem_unknown 0",
        r#"idem_store_seconds_count{step="reserve"} 4"#,
    ] {
        if !text.lines().any(|found| found == line) {
            return Err(format!("not found: {line}").into());
        }
        println!("found  {line}");
    }
    if text.contains("k1-of-this-example") || text.contains("4200") {
        return Err("a key or an argument is in the metrics".into());
    }
    Ok(())
}
