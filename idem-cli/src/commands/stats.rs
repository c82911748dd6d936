//! `idem stats`: how many records there are, and how old.

use comfy_table::Cell;
use idem::record::Standing;
use idem::store::Counts;
use serde_json::{Map, Value, json};

use crate::args::{Global, Stats};
use crate::connect;
use crate::failure::Failure;
use crate::output::{print, print_json, standing_cell, table};
use crate::shown::put_time;
use crate::time;

pub(crate) async fn run(global: &Global, args: &Stats) -> Result<(), Failure> {
    let operator = connect::operator(global).await?;
    let counts = operator.admin.counts(args.finished).await?;
    if global.json {
        return print_json(&Value::Object(as_json(&counts)));
    }
    let mut rows = rows(&counts);
    let finished = match counts.finished {
        Some(finished) => finished.to_string(),
        None if args.finished => "this store cannot tell".to_owned(),
        None => "not counted; --finished counts them".to_owned(),
    };
    rows.push(vec![
        Cell::new("finished"),
        Cell::new(finished),
        Cell::new(""),
    ]);
    print(&table(&[], rows))
}

/// What is open.
pub(crate) fn rows(counts: &Counts) -> Vec<Vec<Cell>> {
    let oldest = |what: &str, us: Option<i64>| match us {
        Some(us) => Cell::new(format!("{what} {}", time::with_age(us, counts.now_us))),
        None => Cell::new(""),
    };
    let row =
        |standing, count: u64, note| vec![standing_cell(Some(standing)), Cell::new(count), note];
    vec![
        row(
            Standing::Unknown,
            counts.unknown,
            oldest("the oldest since", counts.oldest_unknown_us),
        ),
        row(Standing::Lapsed, counts.lapsed, Cell::new("")),
        row(
            Standing::InProgress,
            counts.in_progress,
            oldest(
                "the oldest attempt, lapsed or not, since",
                counts.oldest_started_us,
            ),
        ),
    ]
}

pub(crate) fn as_json(counts: &Counts) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("unknown".to_owned(), json!(counts.unknown));
    map.insert("lapsed".to_owned(), json!(counts.lapsed));
    map.insert("in_progress".to_owned(), json!(counts.in_progress));
    map.insert("finished".to_owned(), json!(counts.finished));
    put_time(&mut map, "now", Some(counts.now_us));
    put_time(&mut map, "oldest_unknown", counts.oldest_unknown_us);
    put_time(&mut map, "oldest_started", counts.oldest_started_us);
    map
}
