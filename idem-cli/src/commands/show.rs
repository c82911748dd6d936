//! `idem show`: one record's life, and what was changed in it by hand.

use std::fmt::Write as _;

use comfy_table::Cell;
use idem::admin::RecordRef;
use idem::identity::RecordId;
use idem::record::Standing;
use idem::store::Audited;
use serde_json::{Value, json};

use crate::args::{Global, Show};
use crate::connect::{self, Operator};
use crate::failure::Failure;
use crate::json::Json;
use crate::output::{cell, print, print_json, table};
use crate::shown::{Shown, became, put_time, state_name};
use crate::time;

pub(crate) async fn run(global: &Global, args: &Show) -> Result<(), Failure> {
    // Wrong JSON is told before the store is asked.
    let call = match (&args.operation, &args.key) {
        (Some(operation), Some(key)) => Some((
            operation.as_str(),
            read("--key", key)?,
            args.scope
                .as_deref()
                .map(|scope| read("--scope", scope))
                .transpose()?,
        )),
        _ => None,
    };
    let operator = connect::operator(global).await?;
    let (record, nothing) = match call {
        Some((operation, key, scope)) => {
            let record = name(&operator, operation, scope.as_ref(), &key);
            (record, none_of(global))
        }
        None => {
            let digits = args.id.as_deref().unwrap_or_default();
            match (operator.find(digits).await, digits.parse()) {
                (Ok(seen), _) => (operator.admin.record(seen.record.id), gone()),
                (Err(nothing), Ok(id)) => (operator.admin.record(id), nothing),
                (Err(failure), _) => return Err(failure),
            }
        }
    };
    let audit = record.audit().await?;
    let Some(seen) = record.get().await? else {
        return show_gone(global, &record.id()?, &audit, nothing);
    };
    let shown = Shown {
        record: &seen.record,
        now_us: seen.now_us,
        grace_us: operator.grace_us,
    };
    if global.json {
        let mut map = shown.json(args.reveal);
        let entries: Vec<_> = audit.iter().map(json_entry).collect();
        map.insert("audit".to_owned(), json!(entries));
        return print_json(&Value::Object(map));
    }
    let mut text = table(&[], shown.lines(args.reveal));
    if !audit.is_empty() {
        text.push('\n');
        text.push_str(&changes(&audit, Some(seen.now_us)));
    }
    if let Some(next) = what_next(shown.standing(), &seen.record.id) {
        let _ = writeln!(text, "\n{next}");
    }
    print(&text)
}

/// Reads a value of the command line.
pub(crate) fn read(option: &str, text: &str) -> Result<Json, Failure> {
    Json::read(text).map_err(|error| Failure::usage(format!("{option}: {error}")))
}

/// Names the record of a call.
pub(crate) fn name(
    operator: &Operator,
    operation: &str,
    scope: Option<&Json>,
    key: &Json,
) -> RecordRef {
    let mut record = operator.engine.record(operation.to_owned());
    if let Some(scope) = scope {
        record = record.scope(scope);
    }
    // Whether a part may be absent is the program's to say.
    record.key(&idem::optional(key))
}

pub(crate) fn none_of(global: &Global) -> Failure {
    Failure::nothing(format!(
        "there is no record of this operation, scope and key in the namespace `{}`; they, --namespace and --secret-file must be those of the program: `idem explain` shows what they become",
        global.namespace
    ))
}

fn gone() -> Failure {
    Failure::nothing("it is gone: it has expired, or was swept")
}

/// What was done by hand is kept for longer than the record.
fn show_gone(
    global: &Global,
    id: &RecordId,
    audit: &[Audited],
    nothing: Failure,
) -> Result<(), Failure> {
    if audit.is_empty() {
        return Err(nothing);
    }
    if global.json {
        let entries: Vec<_> = audit.iter().map(json_entry).collect();
        return print_json(&json!({"id": id.to_hex(), "standing": "gone", "audit": entries}));
    }
    let lines = vec![
        vec![Cell::new("record"), Cell::new(id.to_hex())],
        vec![Cell::new("standing"), Cell::new("gone")],
    ];
    print(&format!("{}\n{}", table(&[], lines), changes(audit, None)))
}

fn changes(audit: &[Audited], now_us: Option<i64>) -> String {
    let rows = audit.iter().map(|entry| row(entry, now_us)).collect();
    format!("changed by hand:\n{}", table(&[], rows))
}

fn row(entry: &Audited, now_us: Option<i64>) -> Vec<Cell> {
    let forced = if entry.forced { ", forced" } else { "" };
    vec![
        Cell::new(match now_us {
            Some(now_us) => time::with_age(entry.at_us, now_us),
            None => time::local(entry.at_us),
        }),
        cell(entry.note.by()),
        Cell::new(format!(
            "{} from {}{forced}",
            became(entry),
            state_name(entry.was)
        )),
        cell(entry.note.why()),
    ]
}

fn json_entry(entry: &Audited) -> Value {
    let mut map = serde_json::Map::new();
    map.insert("by".to_owned(), json!(entry.note.by()));
    map.insert("why".to_owned(), json!(entry.note.why()));
    map.insert(
        "was".to_owned(),
        json!(state_name(entry.was).replace(' ', "-")),
    );
    map.insert("became".to_owned(), json!(became(entry)));
    map.insert("forced".to_owned(), json!(entry.forced));
    map.insert("fence".to_owned(), json!(entry.fence));
    put_time(&mut map, "at", Some(entry.at_us));
    Value::Object(map)
}

/// What whoever looks at such a record may do about it.
fn what_next(standing: Option<Standing>, id: &RecordId) -> Option<String> {
    Some(match standing? {
        Standing::Unknown | Standing::Lapsed => format!(
            "Find out whether it happened, then settle it:\n  \
             idem resolve {id} --done JSON --by NAME --why TEXT   (it did, and this is its answer)\n  \
             idem release {id} --by NAME --why TEXT               (it did not: the next call runs)"
        ),
        Standing::Tombstone => format!(
            "The work is done, and its calls are told that there is no answer to give back. To give one:\n  \
             idem resolve {id} --done JSON --by NAME --why TEXT"
        ),
        _ => return None,
    })
}
