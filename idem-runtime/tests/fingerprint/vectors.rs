//! The published vectors, which Python and Node check, too.

use std::collections::{BTreeMap, HashMap};

use idem::canonical::{CanonicalError, to_vec};
use idem::identity::{Identity, RecordId, Secret};
use serde::ser::{Serialize, SerializeStruct as _, Serializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

fn vectors() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/fingerprint/vectors.json"
    );
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(file["format"], "idem/1");
    file
}

fn list<'a>(file: &'a Value, name: &str) -> &'a [Value] {
    let list = file[name].as_array().unwrap();
    assert!(!list.is_empty());
    list
}

fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// What `serde_json` passes for a number under `arbitrary_precision`.
struct NumberText(&'static str);

impl Serialize for NumberText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const TOKEN: &str = "$serde_json::private::Number";
        let mut number = serializer.serialize_struct(TOKEN, 1)?;
        number.serialize_field(TOKEN, self.0)?;
        number.end()
    }
}

struct Bytes(&'static [u8]);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

#[derive(serde::Serialize)]
struct Address {
    zip: &'static str,
    #[serde(rename = "Name")]
    name: &'static str,
    amount: u64,
}

#[derive(serde::Serialize)]
enum Means {
    Card,
    Split(u8, u8),
    Bank { iban: &'static str, bic: Option<u8> },
}

#[derive(serde::Serialize)]
enum Newtype {
    Card(u8),
}

/// The values that plain JSON cannot hold, or not as the type that is meant.
fn typed(name: &str) -> Result<Vec<u8>, CanonicalError> {
    let absent = BTreeMap::from([("Some", None::<u8>)]);
    match name {
        "2^100" => to_vec(&(1_u128 << 100)),
        "2^100 + 1" => to_vec(&((1_i128 << 100) + 1)),
        "i128::MIN" => to_vec(&i128::MIN),
        "u128::MAX" => to_vec(&u128::MAX),
        "2^128 as text" => to_vec(&NumberText("340282366920938463463374607431768211456")),
        "0.1_f32" => to_vec(&0.1_f32),
        "()" => to_vec(&()),
        "char" => to_vec(&'😀'),
        "bytes" => to_vec(&Bytes(&[0, 7, 255])),
        "struct" => to_vec(&Address {
            zip: "10115",
            name: "x",
            amount: 9_007_199_254_740_993,
        }),
        "integer keys" => to_vec(&HashMap::from([(2_i8, true), (10, true), (-1, true)])),
        "unit variant" => to_vec(&Means::Card),
        "newtype variant" => to_vec(&Newtype::Card(4)),
        "tuple variant" => to_vec(&Means::Split(1, 2)),
        "struct variant" => to_vec(&Means::Bank {
            iban: "DE02",
            bic: None,
        }),
        "None" => to_vec(&None::<Option<u8>>),
        "Some(None)" => to_vec(&Some(None::<Option<u8>>)),
        "Some(Some(None))" => to_vec(&Some(Some(None::<u8>))),
        "Some(())" => to_vec(&Some(())),
        "Some(7)" => to_vec(&Some(7)),
        "Some(Some(7))" => to_vec(&Some(Some(7))),
        "Some of an empty string" => to_vec(&Some("")),
        "Some of a map that looks like Some(None)" => to_vec(&Some(absent)),
        "Some of a map with another entry" => {
            to_vec(&Some(BTreeMap::from([("Some", None::<u8>), ("a", None)])))
        }
        "Some of a map that holds no null" => to_vec(&Some(BTreeMap::from([("Some", 0)]))),
        unknown => panic!("no value for {unknown}"),
    }
}

fn written(vector: &Value) -> Result<Vec<u8>, CanonicalError> {
    if let Some(name) = vector["rust"].as_str() {
        return typed(name);
    }
    assert!(vector.get("some").is_none(), "needs a Rust value");
    if vector.get("ieee754").is_some() {
        let bits = unhex(&vector["ieee754"]).try_into().unwrap();
        return to_vec(&f64::from_be_bytes(bits));
    }
    to_vec(vector.get("input").unwrap())
}

#[test]
fn canonical_texts_are_as_published() {
    for vector in list(&vectors(), "canonical") {
        let name = &vector["name"];
        let written = written(vector);
        if vector.get("refused").is_some() {
            assert!(written.is_err(), "{name}");
            continue;
        }
        let written = written.unwrap();
        let text = str::from_utf8(&written).unwrap();
        assert_eq!(text, vector["canonical"].as_str().unwrap(), "{name}");
        assert_eq!(
            hex(Sha256::digest(text)),
            vector["sha256"].as_str().unwrap()
        );
    }
}

#[test]
fn texts_are_equal_or_differ_as_published() {
    let file = vectors();
    let texts: HashMap<_, _> = list(&file, "canonical")
        .iter()
        .map(|vector| (&vector["name"], &vector["canonical"]))
        .collect();
    assert_eq!(texts.len(), list(&file, "canonical").len());
    for (relation, are_equal) in [("equal", true), ("different", false)] {
        for names in list(&file, relation) {
            let names = names.as_array().unwrap();
            for (at, a) in names.iter().enumerate() {
                for b in &names[..at] {
                    assert_eq!(texts[a] == texts[b], are_equal, "{a} and {b}");
                }
            }
        }
    }
}

#[test]
fn digests_are_as_published() {
    for vector in list(&vectors(), "digests") {
        let text = |name: &str| vector[name].as_str().unwrap();
        let secret = match &vector["secret"] {
            Value::Null => None,
            secret => Some(Secret::new(unhex(secret)).unwrap()),
        };
        let namespace = vector["namespace"].as_str().unwrap_or("any");
        let identity = Identity::new(secret.as_ref(), namespace);
        let id = || text("record_id").parse::<RecordId>().unwrap();
        let found = match text("purpose") {
            "record" => {
                let scope = vector["scope"].as_str().map(str::as_bytes);
                identity
                    .record_id(text("operation"), scope, text("key").as_bytes())
                    .to_hex()
            }
            "payload" => {
                let elements = vector["elements"].as_array().unwrap();
                let elements: Vec<_> = elements
                    .iter()
                    .map(|element| element.as_str().unwrap().as_bytes())
                    .collect();
                hex(identity.fingerprint(&id(), &elements).as_bytes())
            }
            "element" => {
                let position = vector["position"].as_u64().unwrap().try_into().unwrap();
                hex(identity.element_digest(&id(), position, text("value").as_bytes()))
            }
            "scope" => hex(identity.scope_digest(text("scope").as_bytes())),
            "check" => hex(identity.check_value()),
            "downstream" => identity.downstream_key(&id(), text("label")),
            unknown => panic!("no purpose {unknown}"),
        };
        assert_eq!(found, text("digest"), "{}", vector["name"]);
    }
}
