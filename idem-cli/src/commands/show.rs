//! `idem show`: one record's life, and what was changed in it by hand.

use std::fmt::Write as _;

use comfy_table::Cell;
use idem::admin::RecordRef;
use idem::identity::RecordId;
use idem::record::Standing;
use idem::store::{Audited, Seen};
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
    let seen = match call {
        Some((operation, key, scope)) => {
            let record = name(&operator, operation, scope.as_ref(), &key);
            record.get().await?.ok_or_else(|| none_of(global))?
        }
        None => {
            operator
                .find(args.id.as_deref().unwrap_or_default())
                .await?
        }
    };
    let audit = operator.admin.record(seen.record.id).audit().await?;
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
        text.push_str("\nchanged by hand:\n");
        text.push_str(&table(
            &[],
            audit.iter().map(|entry| row(entry, &seen)).collect(),
        ));
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

fn row(entry: &Audited, seen: &Seen) -> Vec<Cell> {
    let forced = if entry.forced { ", forced" } else { "" };
    vec![
        Cell::new(format!(
            "{} ({})",
            time::local(entry.at_us),
            time::age(entry.at_us, seen.now_us)
        )),
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
