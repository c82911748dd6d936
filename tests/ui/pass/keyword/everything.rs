#![deny(warnings)]

use std::time::Duration;

use idem::codec::Json;
use idem::{Engine, Error, idempotent};

struct App {
    engine: Engine,
    ttl: Duration,
}

mod prelude {
    pub use ::idem as runtime;
}

#[idempotent(
    key = id,
    payload = (amount, order.lines[0], order.total()),
    scope = tenant,
    label = id,
    ttl = app.ttl,
    name = "everything",
    engine = app.engine,
    codec = Json,
    on_in_progress = wait("5s"),
    on_missing_key = run,
    on_unknown = rerun,
    on_cancel = finish,
    on_error = store,
    lease = "30s",
    max_run = "15m",
    crate = prelude::runtime,
)]
async fn everything(
    app: std::sync::Arc<App>,
    tenant: u32,
    id: String,
    amount: u32,
    order: Order,
) -> Result<u32, Error> {
    Ok(amount + tenant + order.total())
}

struct Order {
    lines: Vec<u32>,
}

impl Order {
    fn total(&self) -> u32 {
        self.lines.iter().sum()
    }
}

pub fn main() {
    let _ = everything;
}
