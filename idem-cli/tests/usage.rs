//! Proves that wrong input gets one line that says what to do, that help names
//! the exit codes, and that no password is printed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::process::{Command, Output, Stdio};

fn idem(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_idem"))
        .env_clear()
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A command line, how it exits, and what its one line says.
const WRONG: &[(&str, i32, &[&str])] = &[
    ("", 2, &["no command", "idem --help"]),
    ("lst", 2, &["'lst'", "'list'", "--help"]),
    ("list", 2, &["--store URL", "IDEM_STORE"]),
    ("list --store shop.db", 2, &["no scheme", "sqlite://PATH"]),
    (
        "list --store oracle://h/d",
        2,
        &["no scheme", "postgres://"],
    ),
    ("list --store sqlite://", 2, &["sqlite://PATH"]),
    (
        "list --store sqlite://a.db?mode=ro",
        2,
        &["without options"],
    ),
    (
        "list --store sqlite:///nowhere/at/all.db",
        1,
        &["no such SQLite file", "idem migrate"],
    ),
    (
        "check --store sqlite:///nowhere/at/all.db",
        1,
        &["idem migrate"],
    ),
    (
        "migrate --store sqlite:///nowhere/at/all.db",
        1,
        &["does its folder exist"],
    ),
    ("list --store sqlite://a.db --prefix x_", 2, &["--prefix"]),
    (
        "list --store redis://127.0.0.1:1 --schema x",
        2,
        &["--schema"],
    ),
    (
        "list --store rediss://127.0.0.1:1",
        2,
        &["no TLS", "tunnel"],
    ),
    (
        "list --store postgres://127.0.0.1:1/d?sslmode=verify-full",
        2,
        &["no TLS", "tunnel"],
    ),
    (
        "list --store postgres://127.0.0.1:1/d",
        1,
        &["nothing listens"],
    ),
    (
        "list --store postgres://127.0.0.1:99999/d",
        1,
        &["URL", "not valid"],
    ),
    (
        "list --store mysql://127.0.0.1:1/d",
        1,
        &["nothing listens"],
    ),
    ("list --store redis://127.0.0.1:1", 1, &["Redis"]),
    (
        "list --state stuck",
        2,
        &["'stuck'", "unknown", "lapsed", "in-progress", "done"],
    ),
    ("list --sate unknown", 2, &["--sate", "--state"]),
    ("list --older-than 5", 2, &["--older-than", "1h30m"]),
    ("list --older-than 1.5h", 2, &["whole numbers"]),
    ("list --limit 0", 2, &["--limit", "1.."]),
    ("show", 2, &["<ID"]),
    (
        "show abcd --operation payments.charge --key 1",
        2,
        &["cannot be used with"],
    ),
    ("show --operation payments.charge", 2, &["--key"]),
    (
        "show --operation payments.charge --key order-7",
        2,
        &["--key", "no JSON", "double quotes"],
    ),
    (
        "explain --operation payments.charge --key [1,",
        2,
        &["--key", "ends too early"],
    ),
    (
        "explain --operation o --key {\"a\":{\"b\":1,\"b\":2}}",
        2,
        &["$.a.b", "twice"],
    ),
    (
        "explain --operation o --key 1 --scope 1e999",
        2,
        &["--scope", "infinities"],
    ),
    (
        "explain --operation o --key 1 --payload 1 --namespace n --secret-file /nowhere",
        2,
        &["secret file cannot be read"],
    ),
    (
        "explain --operation o --key 1 --one-element",
        2,
        &["--payload"],
    ),
    ("resolve abcd --by ada --why known", 2, &["--done"]),
    (
        "resolve abcd --done 1 --not-done --by ada --why known",
        2,
        &["cannot be used with"],
    ),
    ("resolve abcd --done 1 --by ada", 2, &["--why"]),
    ("resolve abcd --done 1 --why known", 2, &["--by"]),
    (
        "resolve abcd --done {\"charge\":} --by ada --why known",
        2,
        &["--done", "no JSON"],
    ),
    (
        "resolve abcd --done 1 --by ada --why known --ttl 0s",
        2,
        &["--ttl", "longer than zero"],
    ),
    ("release abcd --by ada", 2, &["--why"]),
    ("forget", 2, &["<ID>"]),
    ("check --accept-loss no-secret", 2, &["not-durable"]),
    ("schema", 2, &["--dialect"]),
    (
        "schema --dialect oracle",
        2,
        &["sqlite", "postgres", "mysql"],
    ),
    (
        "schema --dialect postgres --schema a-b",
        1,
        &["letters, digits and underscores"],
    ),
    (
        "serve --no-auth --listen 0.0.0.0:0",
        4,
        &["--token-file", "127.0.0.1"],
    ),
    ("serve", 2, &["--token-file", "--no-auth"]),
    ("serve --listen here", 2, &["--listen"]),
    ("completions csh", 2, &["bash", "fish", "zsh"]),
];

#[test]
fn wrong_input_gets_one_line() {
    for (line, code, expected) in WRONG {
        let arguments: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let output = idem(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "idem {line}: {said}");
        assert_eq!(text(&output.stdout), "", "idem {line}");
        assert_eq!(said.lines().count(), 1, "idem {line}: {said}");
        assert!(said.starts_with("error: "), "idem {line}: {said}");
        for part in *expected {
            assert!(said.contains(part), "idem {line}: {said} has no {part:?}");
        }
    }
}

#[test]
fn help_names_the_exit_codes_and_never_what_the_environment_holds() {
    let output = Command::new(env!("CARGO_BIN_EXE_idem"))
        .env_clear()
        .env("IDEM_STORE", "postgres://idem:hunter2@db/shop")
        .env("IDEM_BY", "hunter2")
        .arg("--help")
        .output()
        .unwrap();
    assert!(output.status.success());
    let help = text(&output.stdout);
    for part in ["Exit codes:", "  5  ", "IDEM_STORE", "no TLS"] {
        assert!(help.contains(part), "{help}");
    }
    assert!(!help.contains("hunter2"), "{help}");
}

#[test]
fn no_password_is_printed() {
    for arguments in [
        vec![
            "list",
            "--store",
            "postgres://idem:hunter2@127.0.0.1:1/shop",
        ],
        vec![
            "list",
            "--store",
            "postgres://idem:hunter2@127.0.0.1:none/shop",
        ],
        vec!["check", "--store", "mysql://idem:hunter2@127.0.0.1:1/shop"],
        vec!["migrate", "--store", "redis://idem:hunter2@127.0.0.1:1"],
        vec!["list", "--store", "oracle://idem:hunter2@h/shop"],
        vec!["list", "--store", "idem:hunter2@h"],
        vec!["postgres://idem:hunter2@h/shop", "list"],
        vec!["list", "postgres://idem:hunter2@h/shop"],
        vec!["list", "--stroe=postgres://idem:hunter2@h/shop"],
        vec![
            "list",
            "--store",
            "postgres://h/shop",
            "--state=redis://:hunter2@h",
        ],
    ] {
        let output = idem(&arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(!said.contains("hunter2"), "{said}");
        assert!(
            !said.is_empty() && text(&output.stdout).is_empty(),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_idem"))
        .env_clear()
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
}
