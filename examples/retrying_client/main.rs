//! A client that retries, and is charged once.
//!
//! **Shows** the other end of `Idempotency-Key`: one intent gets one key, made *before* the first
//! request and sent with every retry of it. The client is [`pay`]; everything else is the server
//! that it talks to, which has one `.layer(…)` and loses answers on purpose.
//!
//! **Run** it; it needs no services and no network:
//!
//! ```text
//! cargo run --example retrying_client
//! ```
//!
//! **Expected output** (exit code 0 only if every intent was charged once):
//!
//! ```text
//! order-1, the network loses two answers
//!   try 1: no answer, sending it again
//!   try 2: no answer, sending it again
//!   try 3: 201 charge 1
//! order-2, the client is impatient
//!   try 1: no answer, sending it again
//!   try 2: 409 in-progress, sending it again in 1 s
//!   try 3: 201 charge 2
//! order-3, the server is overloaded before it does anything
//!   try 1: 503, sending it again
//!   try 2: 201 charge 3
//! order-4, another amount under the same key
//!   try 1: 201 charge 4
//!   try 1: 422 key-reused, final
//! order-5, the server breaks after the charge
//!   try 1: 500, sending it again
//!   try 2: 409 outcome-unknown, final
//!
//! 12 requests, 5 charges for 5 orders
//! ```

mod server;

use std::time::Duration;

use reqwest::{StatusCode, header};
use serde_json::{Value, json};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How often one intent is sent.
const TRIES: u32 = 6;

/// A payment that a user has asked for, once.
struct Intent {
    order: &'static str,
    amount: u64,
    /// Chosen when the user pressed the button, and stored with the order: a client that crashes
    /// goes on with the same one.
    key: String,
}

impl Intent {
    fn new(order: &'static str, amount: u64) -> Self {
        // A real client takes a random UUID.
        let key = format!("{order}-8e03978e-40d5-43dd-bc93-6894a57f9324");
        Self { order, amount, key }
    }
}

/// What became of an intent.
#[derive(Debug, PartialEq)]
enum Paid {
    Charged(Value),
    /// It will never succeed like this: tell the user, or ask the shop.
    Final(StatusCode),
}

/// Sends an intent until there is an answer that more sending does not change.
async fn pay(http: &reqwest::Client, url: &str, intent: &Intent) -> Result<Paid, BoxError> {
    for number in 1..=TRIES {
        let request = http
            .post(url)
            // The same in every try. A new key here would be a second charge.
            .header("Idempotency-Key", format!("\"{}\"", intent.key))
            .json(&json!({ "order": intent.order, "amount": intent.amount }));
        let Ok(response) = request.send().await else {
            // It may have arrived, and may have been done: only the same key can find out.
            println!("  try {number}: no answer, sending it again");
            tokio::time::sleep(pause(number)).await;
            continue;
        };
        let status = response.status();
        let wait = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let body: Value = response.json().await.unwrap_or_default();
        let name = body["type"]
            .as_str()
            .and_then(|kind| kind.rsplit(':').next());
        match (status, wait) {
            (status, _) if status.is_success() => {
                println!(
                    "  try {number}: {} charge {}",
                    status.as_u16(),
                    body["charge"]
                );
                return Ok(Paid::Charged(body));
            }
            (status, Some(wait)) => {
                let name = name.unwrap_or_default();
                println!(
                    "  try {number}: {} {name}, sending it again in {} s",
                    status.as_u16(),
                    wait.as_secs()
                );
                tokio::time::sleep(wait).await;
            }
            (status, None) if status.is_server_error() => {
                println!("  try {number}: {}, sending it again", status.as_u16());
                tokio::time::sleep(pause(number)).await;
            }
            (status, None) => {
                let name = name.unwrap_or_default();
                println!("  try {number}: {} {name}, final", status.as_u16());
                return Ok(Paid::Final(status));
            }
        }
    }
    Err("no answer after all tries: keep the intent with its key, and try again later".into())
}

/// Grows with every try. A real client also adds chance, so that many do not come back at once.
fn pause(number: u32) -> Duration {
    Duration::from_millis(20) * 2_u32.saturating_pow(number)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = server::start().await?;
    let http = reqwest::Client::builder()
        .no_proxy()
        // Short, so that the example does not take long.
        .timeout(Duration::from_millis(300))
        .build()?;
    let charged = |paid: &Paid, number: u64| *paid == Paid::Charged(json!({ "charge": number }));
    let mut good = true;

    println!("order-1, the network loses two answers");
    server.lose_answers(2);
    let paid = pay(&http, &server.url, &Intent::new("order-1", 100)).await?;
    good &= charged(&paid, 1);

    println!("order-2, the client is impatient");
    server.be_slow();
    let paid = pay(&http, &server.url, &Intent::new("order-2", 200)).await?;
    good &= charged(&paid, 2);

    println!("order-3, the server is overloaded before it does anything");
    server.overload();
    let paid = pay(&http, &server.url, &Intent::new("order-3", 300)).await?;
    good &= charged(&paid, 3);

    println!("order-4, another amount under the same key");
    let mut intent = Intent::new("order-4", 400);
    good &= charged(&pay(&http, &server.url, &intent).await?, 4);
    intent.amount = 4_000;
    let paid = pay(&http, &server.url, &intent).await?;
    good &= paid == Paid::Final(StatusCode::UNPROCESSABLE_ENTITY);

    println!("order-5, the server breaks after the charge");
    server.break_after_charge();
    let paid = pay(&http, &server.url, &Intent::new("order-5", 500)).await?;
    good &= paid == Paid::Final(StatusCode::CONFLICT);

    let (requests, charges) = server.counts();
    println!("\n{requests} requests, {charges} charges for 5 orders");
    if good && charges == 5 {
        return Ok(());
    }
    Err("an intent was not charged exactly as it should be".into())
}
