//! Proves that the features of `serde_json` do not change a fingerprint: the
//! published vectors, held in a `Value` that keeps order and every digit.

use idem::canonical::to_vec;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

fn vectors() -> Vec<Value> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/fingerprint/vectors.json"
    );
    let mut file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(file["format"], "idem/1");
    serde_json::from_value(file["canonical"].take()).unwrap()
}

/// The same value, with the entries of all objects the other way round.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(map) => {
            let entries = map.iter().rev();
            let map: Map<_, _> = entries.map(|(k, v)| (k.clone(), reversed(v))).collect();
            Value::Object(map)
        }
        scalar => scalar.clone(),
    }
}

fn text(result: Result<Vec<u8>, idem::canonical::CanonicalError>) -> Option<String> {
    Some(String::from_utf8(result.ok()?).unwrap())
}

#[test]
fn the_features_are_on() {
    let kept = r#"{"b":1267650600228229401496703205377,"a":1.50}"#;
    let value: Value = serde_json::from_str(kept).unwrap();
    assert_eq!(value.to_string(), kept);
}

#[test]
fn vectors_hold_for_values() {
    let mut held = 0;
    for vector in vectors() {
        let Some(input) = vector.get("input") else {
            continue;
        };
        let expected = vector["canonical"].as_str().map(str::to_owned);
        assert_eq!(expected.is_none(), vector.get("refused").is_some());
        for value in [input.clone(), reversed(input)] {
            let written = match vector.get("some").map_or(0, |some| some.as_u64().unwrap()) {
                0 => to_vec(&value),
                1 => to_vec(&Some(value)),
                2 => to_vec(&Some(Some(value))),
                more => panic!("{more} times Some"),
            };
            assert_eq!(text(written), expected, "{}", vector["name"]);
        }
        if let Value::Number(number) = input {
            assert_eq!(text(to_vec(number)), expected, "{}", vector["name"]);
        }
        held += 1;
    }
    assert!(held > 40, "only {held} vectors have an input");
}

#[test]
fn floats_in_numbers_are_written_as_floats() {
    let mut held = 0;
    for vector in vectors() {
        let Some(bits) = vector.get("ieee754") else {
            continue;
        };
        let float = f64::from_bits(u64::from_str_radix(bits.as_str().unwrap(), 16).unwrap());
        let expected = vector["canonical"].as_str().map(str::to_owned);
        assert_eq!(text(to_vec(&float)), expected);
        if let Some(number) = Number::from_f64(float) {
            assert_eq!(text(to_vec(&number)), expected);
            assert_eq!(text(to_vec(&Value::Number(number))), expected);
        }
        held += 1;
    }
    assert!(held > 20, "only {held} vectors are floats");
}

#[test]
fn a_number_that_no_float_holds_is_refused() {
    let huge: Value = serde_json::from_str("[1, 1e999]").unwrap();
    assert_eq!(to_vec(&huge).unwrap_err().path, "$[1]");
}

#[test]
fn raw_text_is_refused() {
    let raw = RawValue::from_string("{\"b\": 1}".to_owned()).unwrap();
    assert_eq!(to_vec(&raw).unwrap_err().path, "$");
    let error = to_vec(&(json!(1), Some(&raw))).unwrap_err();
    assert_eq!(error.path, "$[1]");
    assert!(error.reason.contains("RawValue"));
}

/// Here nothing but the library itself switches that feature on: another crate
/// that does must not be what makes a float come back as it was recorded.
#[test]
fn floats_are_read_exactly_whatever_else_is_in_the_graph() {
    for text in [
        "0.9611757480989835",
        "0.30000000000000004",
        "1.7976931348623157e308",
    ] {
        let exact: f64 = text.parse().unwrap();
        let read: f64 = serde_json::from_str(text).unwrap();
        assert_eq!(read.to_bits(), exact.to_bits(), "{text}");
    }
}
