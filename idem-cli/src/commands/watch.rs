//! `idem watch`: what is open, again and again.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use idem::admin::Filter;
use idem::record::Standing;
use serde_json::{Value, json};

use super::list::gather;
use super::stats::{as_json, rows};
use crate::args::{Global, Watch};
use crate::connect::{self, Operator};
use crate::failure::Failure;
use crate::output::{print, print_json, table};
use crate::shown::{COLUMNS, Shown};

/// What needs somebody first.
const OPEN: [Standing; 3] = [Standing::Unknown, Standing::Lapsed, Standing::InProgress];
/// Moves the cursor to the corner, and clears what is below it.
const REDRAW: &str = "\u{1b}[H\u{1b}[J";
const SHORTEST: Duration = Duration::from_millis(100);

pub(crate) async fn run(global: &Global, args: &Watch) -> Result<(), Failure> {
    let operator = connect::operator(global).await?;
    if global.json {
        return print_json(&document(&operator, args.limit).await?);
    }
    if !io::stdout().is_terminal() {
        return print(&picture(&operator, args.limit).await?);
    }
    let mut every = tokio::time::interval(args.every.max(SHORTEST));
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut stopped = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            _ = &mut stopped => return Ok(()),
            _ = every.tick() => {}
        }
        // A store that is away for a moment is what one watches for.
        let text = match picture(&operator, args.limit).await {
            Ok(text) => text,
            Err(failure) => format!("{}\n", failure.message),
        };
        print(&format!("{REDRAW}{text}"))?;
    }
}

async fn picture(operator: &Operator, limit: u32) -> Result<String, Failure> {
    let counts = operator.admin.counts(false).await?;
    let mut text = table(&[], rows(&counts));
    let mut records = Vec::new();
    for standing in OPEN {
        let listing = gather(&operator.admin, Filter::new(standing), limit).await?;
        records.extend(listing.records.iter().map(|record| {
            let shown = Shown {
                record,
                now_us: listing.now_us,
                grace_us: operator.grace_us,
            };
            shown.row()
        }));
    }
    if !records.is_empty() {
        text.push('\n');
        text.push_str(&table(&COLUMNS, records));
    }
    Ok(text)
}

async fn document(operator: &Operator, limit: u32) -> Result<Value, Failure> {
    let mut map = as_json(&operator.admin.counts(false).await?);
    let mut records = Vec::new();
    for standing in OPEN {
        let listing = gather(&operator.admin, Filter::new(standing), limit).await?;
        records.extend(listing.records.iter().map(|record| {
            let shown = Shown {
                record,
                now_us: listing.now_us,
                grace_us: operator.grace_us,
            };
            Value::Object(shown.json(false))
        }));
    }
    map.insert("records".to_owned(), json!(records));
    Ok(Value::Object(map))
}
