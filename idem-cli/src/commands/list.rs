//! `idem list`: records by where they stand.

use comfy_table::Cell;
use idem::admin::{Admin, Filter, Listing};
use idem::record::Standing;
use serde_json::Value;

use crate::args::{Global, List};
use crate::connect;
use crate::failure::Failure;
use crate::output::{print, print_json, say, table};
use crate::shown::{COLUMNS, Shown};

pub(crate) async fn run(global: &Global, args: &List) -> Result<(), Failure> {
    let operator = connect::operator(global).await?;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut has_more = false;
    for standing in args.state.iter().flat_map(|state| state.standings()) {
        let mut filter = Filter::new(*standing);
        filter.operation.clone_from(&args.operation);
        filter.older_than = args.older_than;
        let listing = gather(&operator.admin, filter, args.limit).await?;
        has_more |= listing.next.is_some();
        for record in &listing.records {
            let shown = Shown {
                record,
                now_us: listing.now_us,
                grace_us: operator.grace_us,
            };
            if global.json {
                print_json(&Value::Object(shown.json(false)))?;
            } else {
                rows.push(shown.row());
            }
        }
    }
    if has_more {
        say("note: there are more; --limit, --operation and --older-than say which to list");
    }
    if global.json {
        return Ok(());
    }
    if rows.is_empty() {
        return print("no such records\n");
    }
    print(&table(&COLUMNS, rows))
}

/// Reads pages until there are enough records, and sorts those that were read:
/// what is open by its age, what has ended latest first.
pub(crate) async fn gather(
    admin: &Admin,
    mut filter: Filter,
    limit: u32,
) -> Result<Listing, Failure> {
    let limit = limit as usize;
    let mut gathered = Listing {
        now_us: 0,
        records: Vec::new(),
        next: None,
    };
    loop {
        filter.limit = u32::try_from(limit - gathered.records.len()).unwrap_or(u32::MAX);
        let page = admin.list(&filter).await?;
        gathered.now_us = page.now_us;
        gathered.records.extend(page.records);
        gathered.next = page.next;
        if page.next.is_none() || gathered.records.len() >= limit {
            break;
        }
        filter.after = page.next;
    }
    let records = &mut gathered.records;
    match filter.standing {
        Standing::Unknown => records.sort_by_key(|r| r.since_us.unwrap_or(r.started_us)),
        Standing::InProgress | Standing::Lapsed => records.sort_by_key(|r| r.started_us),
        _ => records.sort_by_key(|r| std::cmp::Reverse(r.finished_us)),
    }
    Ok(gathered)
}
