//! Proves that `explain` computes the digests of `docs/fingerprint/vectors.json`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;
use std::process::Command;

use serde_json::Value;

fn vectors() -> Vec<Value> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/fingerprint/vectors.json"
    );
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    file["digests"].as_array().unwrap().clone()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// What `explain` says of a record's vector, with a payload.
fn explain(record: &Value, payload: Option<&str>) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_idem"));
    command.env_clear().args(["explain", "--json"]);
    for (option, name) in [
        ("--namespace", "namespace"),
        ("--operation", "operation"),
        ("--key", "key"),
    ] {
        command.args([option, record[name].as_str().unwrap()]);
    }
    if let Some(scope) = record["scope"].as_str() {
        command.args(["--scope", scope]);
    }
    if let Some(payload) = payload {
        command.args(["--payload", payload]);
    }
    let folder = tempfile::tempdir().unwrap();
    if let Some(secret) = record["secret"].as_str() {
        let path = folder.path().join("secret");
        // The newline is not the secret's.
        std::fs::write(&path, [unhex(secret).as_slice(), b"\n"].concat()).unwrap();
        command.arg("--secret-file").arg(path);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn records_scopes_payloads_and_elements_are_those_of_the_vectors() {
    let vectors = vectors();
    let of = |purpose: &'static str| {
        vectors
            .iter()
            .filter(move |vector| vector["purpose"] == purpose)
    };
    let mut checked: HashMap<&str, usize> = HashMap::new();
    let mut count = |purpose| *checked.entry(purpose).or_default() += 1;
    for record in of("record") {
        let explained = explain(record, None);
        assert_eq!(explained["id"], record["digest"], "{}", record["name"]);
        count("record");
        let belongs = |vector: &&Value| {
            vector["secret"] == record["secret"] && vector["record_id"] == record["digest"]
        };
        for payload in of("payload").filter(belongs) {
            let elements: Vec<_> = payload["elements"]
                .as_array()
                .unwrap()
                .iter()
                .map(|element| element.as_str().unwrap())
                .collect();
            let text = match elements.as_slice() {
                [] => None,
                [only] => Some((*only).to_owned()),
                several => Some(format!("[{}]", several.join(","))),
            };
            let explained = explain(record, text.as_deref());
            assert_eq!(
                explained["fingerprint"], payload["digest"],
                "{}",
                payload["name"]
            );
            count("payload");
        }
        for element in of("element").filter(belongs) {
            let position = usize::try_from(element["position"].as_u64().unwrap()).unwrap();
            let mut values = vec!["0"; position + 2];
            values[position] = element["value"].as_str().unwrap();
            let explained = explain(record, Some(&format!("[{}]", values.join(","))));
            assert_eq!(
                explained["payload"][position]["digest"], element["digest"],
                "{}",
                element["name"]
            );
            count("element");
        }
        for scope in of("scope") {
            let same = ["secret", "namespace", "scope"]
                .iter()
                .all(|name| scope[name] == record[name]);
            if same {
                assert_eq!(
                    explained["scope"]["digest"], scope["digest"],
                    "{}",
                    scope["name"]
                );
                count("scope");
            }
        }
    }
    for purpose in ["record", "payload", "element", "scope"] {
        assert!(checked.get(purpose).is_some_and(|n| *n >= 2), "{checked:?}");
    }
    assert_eq!(checked["record"], of("record").count());
}
