//! `idem explain`: what a key and a payload become, so that two sides can see
//! why they differ.

use comfy_table::Cell;
use idem::canonical::{Encoded, Missing, MissingKind};
use idem::identity::{Identity, RecordId};
use idem::record::{Record, Standing};
use idem::store::Seen;
use serde_json::{Value, json};

use super::show::{name, none_of, read};
use crate::args::{Explain, Global};
use crate::connect;
use crate::failure::Failure;
use crate::json::Json;
use crate::output::{cell, plain, print, print_json, standing_name, table};
use crate::shown::hex;

pub(crate) async fn run(global: &Global, args: &Explain) -> Result<(), Failure> {
    let call = &args.call;
    let key = read("--key", &call.key)?;
    let scope = call
        .scope
        .as_deref()
        .map(|scope| read("--scope", scope))
        .transpose()?;
    let payload = match &args.payload {
        Some(payload) => elements(read("--payload", payload)?, args.one_element),
        None => Vec::new(),
    };
    let secret = connect::secret(global)?;
    let identity = Identity::new(secret.as_ref(), &*global.namespace);
    let explained = Explained::new(&identity, &call.operation, &key, scope.as_ref(), &payload)?;
    let recorded = if args.compare {
        let operator = connect::operator(global).await?;
        let record = name(&operator, &call.operation, scope.as_ref(), &key);
        let seen = record.get().await?.ok_or_else(|| none_of(global))?;
        let standing = operator.admin.standing(&seen);
        Some((seen, standing))
    } else {
        None
    };
    if global.json {
        print_json(&explained.json(recorded.as_ref()))
    } else {
        print(&explained.table(recorded.as_ref()))
    }
}

/// Splits a payload as an engine does: a tuple of several consists of those.
fn elements(payload: Json, one_element: bool) -> Vec<Json> {
    match payload {
        Json::Array(items) if items.len() > 1 && !one_element => items,
        payload => vec![payload],
    }
}

/// What the store has, and where that stands.
type Recorded = (Seen, Option<Standing>);

/// A canonical text and its digest.
struct Digested {
    text: String,
    digest: String,
}

struct Explained<'a> {
    identity: &'a Identity,
    operation: &'a str,
    key: Encoded,
    scope: Option<Digested>,
    id: RecordId,
    elements: Vec<Digested>,
    fingerprint: String,
}

impl<'a> Explained<'a> {
    fn new(
        identity: &'a Identity,
        operation: &'a str,
        key: &Json,
        scope: Option<&Json>,
        payload: &[Json],
    ) -> Result<Self, Failure> {
        let key = encode("--key", key)?;
        let scope = scope.map(|scope| encode("--scope", scope)).transpose()?;
        let scope_bytes = scope.as_ref().map(|scope| scope.bytes.as_slice());
        let id = identity.record_id(operation, scope_bytes, &key.bytes);
        let payload = payload
            .iter()
            .map(|element| encode("--payload", element))
            .collect::<Result<Vec<_>, _>>()?;
        let bytes: Vec<_> = payload
            .iter()
            .map(|element| element.bytes.as_slice())
            .collect();
        Ok(Self {
            identity,
            operation,
            scope: scope_bytes.map(|bytes| Digested {
                text: text(bytes),
                digest: hex(&identity.scope_digest(bytes)),
            }),
            id,
            fingerprint: hex(identity.fingerprint(&id, &bytes).as_bytes()),
            elements: bytes
                .iter()
                .enumerate()
                .map(|(at, bytes)| Digested {
                    text: text(bytes),
                    digest: hex(&identity.element_digest(&id, at, bytes)),
                })
                .collect(),
            key,
        })
    }

    fn table(&self, recorded: Option<&Recorded>) -> String {
        let secret = if self.identity.has_secret() {
            "set"
        } else {
            "none: whoever reads the store can guess values from their digests"
        };
        let mut rows = Vec::new();
        let mut add = |name: &str, text: &str, digest: &str| {
            rows.push(vec![Cell::new(name), cell(text), Cell::new(digest)]);
        };
        add("namespace", self.identity.namespace(), "");
        add("operation", self.operation, "");
        add("secret", secret, "");
        match &self.scope {
            Some(scope) => add("scope", &scope.text, &scope.digest),
            None => add("scope", "none", ""),
        }
        add("key", &text(&self.key.bytes), "");
        if let Some(missing) = self.missing() {
            add("", &missing, "");
        }
        add("record", &self.id.to_hex(), "");
        if self.elements.is_empty() {
            add("payload", "none", "");
        }
        for (at, element) in self.elements.iter().enumerate() {
            add(&format!("payload {at}"), &element.text, &element.digest);
        }
        add("fingerprint", &self.fingerprint, "");
        let mut text = table(&[], rows);
        if let Some((seen, standing)) = recorded {
            text.push('\n');
            text.push_str(&self.compared(seen, *standing));
        }
        text
    }

    /// What the store has recorded, beside what was given.
    fn compared(&self, seen: &Seen, standing: Option<Standing>) -> String {
        let record = &seen.record;
        let is_same = hex(record.fingerprint.as_bytes()) == self.fingerprint;
        let mut text = format!("{}\n", verdict(record, standing, is_same));
        if is_same {
            return text;
        }
        let given = self
            .elements
            .iter()
            .map(Some)
            .chain(std::iter::repeat(None));
        let rows: Vec<_> = record
            .elements
            .iter()
            .zip(given)
            .map(|(element, given)| {
                let verdict = match given {
                    Some(given) if given.digest == hex(&element.digest) => "same",
                    Some(_) => "differs",
                    None => "not given",
                };
                vec![Cell::new(plain(&element.label)), Cell::new(verdict)]
            })
            .collect();
        let more = self.elements.len().saturating_sub(record.elements.len());
        if !rows.is_empty() {
            text.push_str(&table(&["ELEMENT", "IS"], rows));
        }
        if more > 0 {
            text.push_str(&format!("{more} more given than recorded\n"));
        }
        text
    }

    fn json(&self, recorded: Option<&Recorded>) -> Value {
        let digested =
            |digested: &Digested| json!({"canonical": digested.text, "digest": digested.digest});
        let payload: Vec<_> = self.elements.iter().map(digested).collect();
        let mut value = json!({
            "namespace": self.identity.namespace(),
            "operation": self.operation,
            "has_secret": self.identity.has_secret(),
            "scope": self.scope.as_ref().map(digested),
            "key": {"canonical": text(&self.key.bytes), "missing": self.missing()},
            "id": self.id.to_hex(),
            "payload": payload,
            "fingerprint": self.fingerprint,
        });
        if let Some((seen, standing)) = recorded {
            let elements: Vec<_> = seen
                .record
                .elements
                .iter()
                .map(|element| json!({"label": element.label, "digest": hex(&element.digest)}))
                .collect();
            let fingerprint = hex(seen.record.fingerprint.as_bytes());
            value["recorded"] = json!({
                "is_same": fingerprint == self.fingerprint,
                "standing": standing_name(*standing),
                "payload": elements,
                "fingerprint": fingerprint,
            });
        }
        value
    }

    /// Why a program would refuse the key.
    fn missing(&self) -> Option<String> {
        let is = |kind| match kind {
            MissingKind::Null => "null",
            MissingKind::Blank => "blank",
        };
        let what = match self.key.missing? {
            Missing::Whole(kind) => format!("it is {}", is(kind)),
            Missing::Element(at, kind) => format!("its part {at} is {}", is(kind)),
        };
        Some(format!(
            "{what}: no key, unless the program says `idem::optional`"
        ))
    }
}

/// What becomes of a call whose payload is the recorded one, or is not.
fn verdict(record: &Record, standing: Option<Standing>, is_same: bool) -> &'static str {
    let has_versions = record.version_recorded.is_some() || record.version_running.is_some();
    match (standing, is_same) {
        (None | Some(Standing::Released), true) => {
            "the recorded payload is the same, but its record has expired or was released: the next call runs, with whatever payload"
        }
        (None | Some(Standing::Released), false) => {
            "the recorded payload is another, but its record has expired or was released: the next call runs, with whatever payload"
        }
        (_, true) if has_versions => {
            "the recorded payload is the same: such a call of the recorded version is a repetition"
        }
        (_, false) if has_versions => {
            "the recorded payload is another: such a call of the recorded version is refused, one of a newer version is not"
        }
        (Some(Standing::Unknown | Standing::Lapsed), true) => {
            "the recorded payload is the same: such a call is a repetition, of one whose outcome is in doubt"
        }
        (_, true) => "the recorded payload is the same: such a call is a repetition",
        (_, false) => "the recorded payload is another: such a call is refused",
    }
}

fn encode(option: &str, json: &Json) -> Result<Encoded, Failure> {
    json.encode()
        .map_err(|error| Failure::usage(format!("{option}: {error}")))
}

/// Canonical JSON is UTF-8.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
