//! `idem sweep`: deletes finished records that have expired.

use std::time::Duration;

use idem::store::{Capability, Sweep};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::args::Global;
use crate::connect;
use crate::failure::Failure;
use crate::output::{print, print_json};

const BATCH: u32 = 1_000;

pub(crate) async fn run(global: &Global) -> Result<(), Failure> {
    let operator = connect::operator(global).await?;
    if operator.store.lacks().contains(&Capability::Sweep) {
        if global.json {
            return print_json(&json!({"deleted": null}));
        }
        return print("this store deletes what has expired by itself: there was nothing to do\n");
    }
    // Hidden by itself if standard error is no terminal. How many there are is
    // not known before they are deleted.
    let progress = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos} rows deleted, {per_sec}") {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(100));
    let request = Sweep {
        limit: BATCH,
        grace_us: operator.grace_us,
    };
    let mut total: u64 = 0;
    loop {
        let batch = operator.store.sweep(&request).await?;
        total += batch;
        progress.inc(batch);
        if batch < u64::from(BATCH) {
            break;
        }
    }
    progress.finish_and_clear();
    if global.json {
        return print_json(&json!({"deleted": total}));
    }
    let rows = if total == 1 { "row" } else { "rows" };
    print(&format!("{total} {rows} deleted\n"))
}
