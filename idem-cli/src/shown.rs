//! A record as it is shown: never its key, its arguments or, unless it is asked
//! for, its answer.

use comfy_table::Cell;
use idem::identity::RecordId;
use idem::record::{Record, Standing, State, TombstoneReason, UnknownReason, VersionBytes};
use idem::store::Audited;
use serde_json::{Map, Value, json};

use crate::finding::hyphenated;
use crate::output::{cell, plain, standing_cell, standing_name};
use crate::time;

/// A record, and the store's time when it was read.
pub(crate) struct Shown<'a> {
    pub(crate) record: &'a Record,
    pub(crate) now_us: i64,
    pub(crate) grace_us: i64,
}

/// The columns of [`Shown::row`].
pub(crate) const COLUMNS: [&str; 7] = [
    "RECORD",
    "STANDING",
    "OPERATION",
    "LABEL",
    "ATTEMPT",
    "SINCE",
    "REASON",
];

impl Shown<'_> {
    pub(crate) fn standing(&self) -> Option<Standing> {
        self.record.standing(self.now_us, self.grace_us)
    }

    /// Since when it stands where it stands.
    fn since_us(&self) -> i64 {
        let record = self.record;
        match self.standing() {
            Some(Standing::InProgress) => record.started_us,
            Some(Standing::Lapsed) => record.lease_until_us.unwrap_or(record.started_us),
            Some(Standing::Unknown) => record.since_us.unwrap_or(record.started_us),
            _ => record.finished_us.unwrap_or(record.started_us),
        }
    }

    /// Why it is unknown, or a tombstone, in words.
    pub(crate) fn reason(&self) -> Option<String> {
        if self.record.state == State::InProgress {
            return (self.standing() == Some(Standing::Unknown))
                .then(|| UnknownReason::Unfinished.to_string());
        }
        self.reason_of(
            |unknown| unknown.to_string(),
            |tombstone| tombstone.to_string(),
        )
    }

    fn reason_of(
        &self,
        unknown: impl Fn(UnknownReason) -> String,
        tombstone: impl Fn(TombstoneReason) -> String,
    ) -> Option<String> {
        let code = self.record.reason?;
        match self.record.state {
            State::Unknown => UnknownReason::from_code(code).map(unknown),
            State::Tombstone => TombstoneReason::from_code(code).map(tombstone),
            _ => None,
        }
    }

    /// One line of a list.
    pub(crate) fn row(&self) -> Vec<Cell> {
        let record = self.record;
        let since = self.since_us();
        vec![
            Cell::new(record.id),
            standing_cell(self.standing()),
            cell(&record.operation),
            cell(record.label.as_ref().map_or("", |label| label.as_str())),
            Cell::new(record.attempt),
            Cell::new(time::with_age(since, self.now_us)),
            Cell::new(self.reason().unwrap_or_default()),
        ]
    }

    /// Everything, a line each.
    pub(crate) fn lines(&self, reveal: bool) -> Vec<Vec<Cell>> {
        let record = self.record;
        let mut lines = Lines(Vec::new());
        lines.add("record", record.id.to_hex());
        lines.add("operation", plain(&record.operation));
        if let Some(label) = &record.label {
            lines.add("label", plain(label.as_str()));
        }
        let standing = standing_name(self.standing());
        lines.add(
            "standing",
            match self.reason() {
                Some(reason) => format!("{standing}: {reason}"),
                None => standing.to_owned(),
            },
        );
        lines.add("attempt", self.attempt());
        for (name, at) in self.times() {
            if let Some(at) = at {
                lines.add(name, time::with_age(at, self.now_us));
            }
        }
        if record.finished_us.is_some() && record.expires_us.is_none() && self.is_finished() {
            lines.add("expires", "never".to_owned());
        }
        for (at, element) in record.elements.iter().enumerate() {
            let digest = hex(&element.digest);
            let label = plain(&element.label);
            let name = if at == 0 { "payload" } else { "" };
            lines.add(name, format!("{label} {digest}"));
        }
        lines.add("fingerprint", hex(record.fingerprint.as_bytes()));
        if let Some(scope) = &record.scope {
            lines.add("scope", hex(scope));
        }
        for (name, version) in self.versions() {
            if let Some(version) = version {
                lines.add(name, shown_version(version, reveal));
            }
        }
        if let Some(parent) = &record.parent {
            lines.add("part of", parent.to_hex());
        }
        lines.add("answer", self.answer(reveal));
        lines.0
    }

    fn attempt(&self) -> String {
        let record = self.record;
        let mut text = format!(
            "{}, fence {}, {} takeovers",
            record.attempt, record.fence, record.takeovers
        );
        if record.doubt {
            text.push_str(", after one in doubt");
        }
        text
    }

    fn is_finished(&self) -> bool {
        matches!(
            self.record.state,
            State::Completed | State::Tombstone | State::Released
        )
    }

    fn times(&self) -> [(&'static str, Option<i64>); 6] {
        let record = self.record;
        [
            ("started", Some(record.started_us)),
            ("lease until", record.lease_until_us),
            ("finished", record.finished_us),
            ("in doubt since", record.since_us),
            ("asked again", record.not_before_us),
            ("expires", record.expires_us),
        ]
    }

    fn versions(&self) -> [(&'static str, Option<&VersionBytes>); 3] {
        let record = self.record;
        [
            ("version applied", record.version_applied.as_ref()),
            ("version recorded", record.version_recorded.as_ref()),
            ("version running", record.version_running.as_ref()),
        ]
    }

    fn answer(&self, reveal: bool) -> String {
        let Some(answer) = &self.record.answer else {
            return "none".to_owned();
        };
        if reveal {
            // Whoever asks for it wants the bytes; a terminal gets no escapes.
            return plain(&String::from_utf8_lossy(&answer.bytes));
        }
        let kind = if answer.failed { "an `Err`" } else { "an `Ok`" };
        format!(
            "{kind} of {} bytes, written as {}; `--reveal` shows it",
            answer.bytes.len(),
            plain(&answer.codec)
        )
    }

    /// As a JSON object with stable names.
    pub(crate) fn json(&self, reveal: bool) -> Map<String, Value> {
        let record = self.record;
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("id", json!(record.id.to_hex()));
        put("operation", json!(record.operation));
        put(
            "label",
            json!(record.label.as_ref().map(|label| label.as_str())),
        );
        put(
            "standing",
            json!(standing_name(self.standing()).replace(' ', "-")),
        );
        put("reason", json!(self.reason_name()));
        put("attempt", json!(record.attempt));
        put("fence", json!(record.fence));
        put("takeovers", json!(record.takeovers));
        put("doubt", json!(record.doubt));
        put("fingerprint", json!(hex(record.fingerprint.as_bytes())));
        put(
            "scope",
            json!(record.scope.as_ref().map(|scope| hex(scope))),
        );
        put(
            "parent",
            json!(record.parent.as_ref().map(RecordId::to_hex)),
        );
        let elements = record.elements.iter();
        let elements: Vec<_> = elements
            .map(|element| json!({"label": element.label, "digest": hex(&element.digest)}))
            .collect();
        put("payload", json!(elements));
        put("answer", self.json_answer(reveal));
        for (name, version) in self.versions() {
            let shown = version
                .filter(|_| reveal)
                .map(|version| hex(version.as_bytes()));
            put(&name.replace(' ', "_"), json!(shown));
        }
        put_time(&mut map, "now", Some(self.now_us));
        put_time(&mut map, "since", Some(self.since_us()));
        put_time(&mut map, "started", Some(record.started_us));
        put_time(&mut map, "lease_until", record.lease_until_us);
        put_time(&mut map, "finished", record.finished_us);
        put_time(&mut map, "in_doubt_since", record.since_us);
        put_time(&mut map, "not_before", record.not_before_us);
        put_time(&mut map, "expires", record.expires_us);
        map
    }

    fn reason_name(&self) -> Option<String> {
        if self.record.state == State::InProgress {
            return (self.standing() == Some(Standing::Unknown)).then(|| "unfinished".to_owned());
        }
        self.reason_of(
            |unknown| hyphenated(&format!("{unknown:?}")),
            |tombstone| hyphenated(&format!("{tombstone:?}")),
        )
    }

    fn json_answer(&self, reveal: bool) -> Value {
        let Some(answer) = &self.record.answer else {
            return Value::Null;
        };
        let mut value = json!({
            "codec": answer.codec,
            "failed": answer.failed,
            "bytes": answer.bytes.len(),
            "digest": hex(&answer.digest),
        });
        if reveal {
            value["text"] = json!(std::str::from_utf8(&answer.bytes).ok());
            value["hex"] = json!(hex(&answer.bytes));
        }
        value
    }
}

/// Lines of a name and what it is.
struct Lines(Vec<Vec<Cell>>);

impl Lines {
    fn add(&mut self, name: &str, text: String) {
        self.0.push(vec![Cell::new(name), Cell::new(text)]);
    }
}

/// A version is an argument: only its length is shown.
fn shown_version(version: &VersionBytes, reveal: bool) -> String {
    let bytes = version.as_bytes();
    if reveal {
        hex(bytes)
    } else {
        format!("{} bytes; `--reveal` shows them", bytes.len())
    }
}

/// Adds a time twice: in microseconds, and as text after RFC 3339.
pub(crate) fn put_time(map: &mut Map<String, Value>, name: &str, us: Option<i64>) {
    map.insert(format!("{name}_us"), json!(us));
    map.insert(name.to_owned(), json!(us.map(time::rfc_3339)));
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What was made of a record by hand.
pub(crate) fn became(entry: &Audited) -> &'static str {
    match entry.became {
        1 => "resolved",
        2 => "released",
        3 => "forgotten",
        _ => "changed",
    }
}

/// The word for a state in the audit.
pub(crate) fn state_name(state: State) -> &'static str {
    match state {
        State::InProgress => "in progress",
        State::Released => "released",
        State::Completed => "completed",
        State::Tombstone => "tombstone",
        State::Unknown => "unknown",
    }
}
