//! JSON as it was typed: every number with all its digits, every key even if
//! it comes twice.
//!
//! `serde_json::Value` would round integers beyond 64 bits and keep one of two
//! equal keys, and so find the digests of another call.

use std::fmt;

use idem::canonical::{self, Encoded};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{SerializeMap as _, SerializeTuple as _};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// As deep as a canonical text may be.
const MAX_DEPTH: usize = 128;

/// A value as it was typed.
#[derive(Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// An integer of up to 128 bits; a larger one is refused.
    Positive(u128),
    Negative(i128),
    Float(f64),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// Why a text is no JSON that can be digested. Never a part of the text, but
/// the names of its fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JsonError {
    /// Where, as `$.items[2].price`.
    path: String,
    reason: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path == "$" {
            f.write_str(&self.reason)
        } else {
            write!(f, "at {}: {}", self.path, self.reason)
        }
    }
}

impl Json {
    /// Reads one value.
    pub(crate) fn read(text: &str) -> Result<Self, JsonError> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| JsonError {
            path: "$".to_owned(),
            reason: not_json(&error),
        })?;
        read(raw.get(), "$", 0)
    }

    /// Writes it as the library digests it.
    pub(crate) fn encode(&self) -> Result<Encoded, JsonError> {
        canonical::encode(self).map_err(|error| JsonError {
            path: error.path,
            reason: error.reason.to_owned(),
        })
    }
}

/// Says where a text stops being JSON, without quoting it.
pub(crate) fn not_json(error: &serde_json::Error) -> String {
    let hint = "texts need double quotes, also inside the shell's: '\"order-7\"'";
    if error.is_eof() {
        return format!("it ends too early for JSON; {hint}");
    }
    format!("it is no JSON from column {} on; {hint}", error.column())
}

fn read(text: &str, path: &str, depth: usize) -> Result<Json, JsonError> {
    let wrong = |reason: &str| JsonError {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    if depth > MAX_DEPTH {
        return Err(wrong("nested deeper than 128 levels"));
    }
    Ok(match text.as_bytes().first() {
        Some(b'n') => Json::Null,
        Some(b't') => Json::Bool(true),
        Some(b'f') => Json::Bool(false),
        Some(b'"') => Json::Text(
            serde_json::from_str(text)
                .map_err(|_| wrong("a text with half of a surrogate pair, or a wrong escape"))?,
        ),
        Some(b'[') => {
            let items: Vec<&RawValue> =
                serde_json::from_str(text).map_err(|error| wrong(&not_json(&error)))?;
            let items = items.into_iter().enumerate();
            Json::Array(
                items
                    .map(|(at, item)| read(item.get(), &format!("{path}[{at}]"), depth + 1))
                    .collect::<Result<_, _>>()?,
            )
        }
        Some(b'{') => Json::Object(read_object(text, path, depth)?),
        _ => number(text).ok_or_else(|| wrong("an integer of more than 128 bits"))?,
    })
}

fn read_object(text: &str, path: &str, depth: usize) -> Result<Vec<(String, Json)>, JsonError> {
    let wrong = |reason: String| JsonError {
        path: path.to_owned(),
        reason,
    };
    let Entries(entries) = serde_json::from_str(text).map_err(|error| wrong(not_json(&error)))?;
    let mut object: Vec<(String, Json)> = Vec::with_capacity(entries.len());
    for (name, value) in entries {
        let inner = format!("{path}.{name}");
        if object.iter().any(|(other, _)| *other == name) {
            return Err(JsonError {
                path: inner,
                reason: "this key comes twice in one object".to_owned(),
            });
        }
        object.push((name, read(value.get(), &inner, depth + 1)?));
    }
    Ok(object)
}

/// An integer if it has neither a fraction nor an exponent.
fn number(text: &str) -> Option<Json> {
    if text.contains(['.', 'e', 'E']) {
        // What is too large becomes infinite, which has no canonical form.
        return text.parse().ok().map(Json::Float);
    }
    match text.parse() {
        Ok(positive) => Some(Json::Positive(positive)),
        Err(_) => text.parse().ok().map(Json::Negative),
    }
}

/// The entries of an object, in order, those that repeat a key too.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key()? {
                    entries.push((name, map.next_value().map_err(A::Error::custom)?));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Positive(value) => serializer.serialize_u128(*value),
            Self::Negative(value) => serializer.serialize_i128(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            // A tuple, since that is what a key of several parts is.
            Self::Array(items) => {
                let mut tuple = serializer.serialize_tuple(items.len())?;
                for item in items {
                    tuple.serialize_element(item)?;
                }
                tuple.end()
            }
            Self::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (name, value) in entries {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let refused = match Json::read(text) {
            Ok(json) => json.encode().expect_err(text),
            Err(error) => error,
        };
        refused.to_string()
    }

    #[test]
    fn what_cannot_be_digested_is_named_by_its_path() {
        assert_eq!(
            refused(r#"{"a":[1,{"b":1,"b":2}]}"#),
            "at $.a[1].b: this key comes twice in one object"
        );
        assert_eq!(
            refused(r#"{"\u0062":1,"b":2}"#),
            "at $.b: this key comes twice in one object"
        );
        let large = format!("[0,{}]", "9".repeat(40));
        assert_eq!(refused(&large), "at $[1]: an integer of more than 128 bits");
        assert_eq!(
            refused("1e999"),
            "NaN and infinities have no canonical form"
        );
        assert!(refused(r#"["\ud800"]"#).starts_with("at $[0]: a text with half"));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(refused(&deep).ends_with("nested deeper than 128 levels"));
        assert!(refused("{\"a\":").starts_with("it ends too early"));
        for text in ["order-7", "", "1 2", "NaN", "[1,]", "'a'", "01"] {
            assert!(refused(text).contains("JSON"), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn numbers_keep_what_they_mean() {
        for (text, canonical) in [
            ("9007199254740993", "9007199254740993"),
            (
                "-170141183460469231731687303715884105728",
                "-170141183460469231731687303715884105728",
            ),
            (
                "340282366920938463463374607431768211455",
                "340282366920938463463374607431768211455",
            ),
            ("-0", "0"),
            ("1.0", "1"),
            ("1E3", "1000"),
        ] {
            let bytes = Json::read(text).unwrap().encode().unwrap().bytes;
            assert_eq!(String::from_utf8(bytes).unwrap(), canonical);
        }
    }

    /// Every vector of `docs/fingerprint/vectors.json` that is a value.
    #[test]
    fn canonical_vectors_hold() {
        #[derive(serde::Deserialize)]
        struct File {
            canonical: Vec<Vector>,
        }
        #[derive(serde::Deserialize)]
        struct Vector {
            name: String,
            input: Option<Box<RawValue>>,
            ieee754: Option<String>,
            #[serde(default)]
            some: usize,
            canonical: Option<String>,
        }
        fn wrapped(json: Json, some: usize) -> Result<Vec<u8>, String> {
            let encoded = match some {
                0 => canonical::to_vec(&json),
                1 => canonical::to_vec(&Some(json)),
                2 => canonical::to_vec(&Some(Some(json))),
                3 => canonical::to_vec(&Some(Some(Some(json)))),
                more => return Err(format!("{more} levels of `Some`")),
            };
            encoded.map_err(|error| error.to_string())
        }
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../docs/fingerprint/vectors.json"
        );
        let file: File = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(file.canonical.len() >= 85);
        for vector in file.canonical {
            let text = match (&vector.input, &vector.ieee754) {
                (Some(input), _) => input.get().to_owned(),
                (_, Some(bits)) => {
                    let bits = u64::from_str_radix(bits, 16).unwrap();
                    format!("{:e}", f64::from_bits(bits))
                }
                // What the input `null` is read as.
                _ => "null".to_owned(),
            };
            let found = Json::read(&text)
                .map_err(|error| error.to_string())
                .and_then(|json| wrapped(json, vector.some));
            match vector.canonical {
                Some(expected) => {
                    let found = String::from_utf8(found.expect(&vector.name)).unwrap();
                    assert_eq!(found, expected, "{}", vector.name);
                }
                None => assert!(found.is_err(), "{}", vector.name),
            }
        }
    }
}
