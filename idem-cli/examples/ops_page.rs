//! An application that has the page for operators beside its own routes.
//!
//! **Run** it, and open the address that it prints, with the token that it
//! prints:
//!
//! ```text
//! cargo run -p idem-cli --example ops_page -- sqlite://shop.db
//! ```
//!
//! `POST /charge/ORDER` charges once for each order; `POST /charge/ORDER?break=panic`
//! leaves an outcome that nobody knows, and the page shows it.
//!
//! Arguments: the store's URL, then the address to listen on (a free port of
//! this machine unless told). `IDEM_OPS_TOKEN` is the token; without one, it
//! draws one.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use idem::{Error, idempotent};
use idem_cli::ops::{self, Access};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The application's own work.
#[idempotent(name = "shop.charge", key = order, label = order, payload = amount, ttl = "24h")]
async fn charge(order: String, amount: u64, fails: bool) -> Result<Value, Error> {
    assert!(!fails, "the body was told to panic");
    Ok(json!({ "charge": format!("ch_{order}"), "amount": amount }))
}

async fn checkout(
    Path(order): Path<String>,
    Query(asked): Query<HashMap<String, String>>,
) -> Response {
    let fails = asked.get("break").is_some_and(|how| how == "panic");
    // A body that panics does so in its caller, which is a task of its own here.
    let charged = tokio::spawn(charge(order, 4_200, fails)).await;
    match charged {
        Ok(Ok(charge)) => Json(charge).into_response(),
        Ok(Err(error)) => (StatusCode::CONFLICT, error.to_string()).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "something broke").into_response(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = arguments
        .next()
        .unwrap_or_else(|| "sqlite://shop.db".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let engine = idem::connect(&store).await?;
    idem::install(engine.clone())?;

    let token = match std::env::var_os("IDEM_OPS_TOKEN") {
        Some(token) => token
            .into_string()
            .map_err(|_| "the token is not Unicode")?,
        None => {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes)?;
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        }
    };

    let app = Router::new()
        .route("/", get(async || Html("<a href=/ops>What is stuck?</a>")))
        .route("/charge/{order}", post(checkout))
        .nest("/ops", ops::router(&engine, Access::token(&token)?));

    let listener = TcpListener::bind(&address).await?;
    println!("http://{}/ops", listener.local_addr()?);
    println!("token: {token}");
    let stop = async {
        // Without signals it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    ops::serve(listener, app, stop).await?;
    engine.shutdown(Duration::from_secs(25)).await?;
    Ok(())
}
