//! Proves that dependencies between modules go in one direction, by reading
//! the sources: what `ARCHITECTURE.md` forbids does not appear in them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
    files
}

/// The lines of a file that are code, before its unit tests.
fn code(path: &Path) -> Vec<String> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(str::to_owned)
        .collect()
}

/// Fails if a file below `folder` (or the file itself) names one of `words`,
/// except in the lines that contain one of `allowed`.
fn forbid(place: &str, words: &[&str], allowed: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
    let files = if root.is_dir() {
        sources(&root)
    } else {
        vec![root]
    };
    assert!(!files.is_empty(), "{place} has no sources");
    for file in files {
        for (number, line) in code(&file).iter().enumerate() {
            let found = words.iter().find(|word| line.contains(*word));
            let excepted = allowed.iter().any(|allowed| line.contains(allowed));
            assert!(
                found.is_none() || excepted,
                "{}:{}: {place} must not name {found:?}",
                file.display(),
                number + 1,
            );
        }
    }
}

#[test]
fn a_store_knows_no_engine() {
    forbid(
        "idem-runtime/src/store",
        &["crate::engine", "crate::singleflight", "crate::context"],
        &[],
    );
}

#[test]
fn an_engine_knows_no_store_but_to_open_the_one_of_a_url() {
    forbid(
        "idem-runtime/src/engine",
        &[
            "MemoryStore",
            "SqliteStore",
            "PostgresStore",
            "MySqlStore",
            "RedisStore",
            "sqlx",
        ],
        &["Store::connect(url)"],
    );
}

#[test]
fn the_side_for_operators_is_that_of_any_store() {
    forbid(
        "idem-runtime/src/admin",
        &[
            "MemoryStore",
            "SqliteStore",
            "PostgresStore",
            "MySqlStore",
            "RedisStore",
            "sqlx",
        ],
        &[],
    );
}

#[test]
fn stores_do_not_know_each_other() {
    forbid(
        "idem-runtime/src/store/sqlite",
        &["MemoryStore"],
        // What an error recommends.
        &["use `MemoryStore`"],
    );
    forbid("idem-runtime/src/store/memory.rs", &["Sqlite"], &[]);
    forbid(
        "idem-runtime/src/store/tiered",
        &[
            "MemoryStore",
            "Sqlite",
            "Postgres",
            "MySql",
            "transition::reserve",
        ],
        &[],
    );
    for (store, others) in [
        ("postgres", ["Sqlite", "MySql", "Redis"]),
        ("mysql", ["Sqlite", "Postgres", "Redis"]),
        ("redis", ["Sqlite", "Postgres", "MySql"]),
    ] {
        forbid(&format!("idem-runtime/src/store/{store}"), &others, &[]);
    }
}

#[test]
fn http_asks_the_engine_and_no_store() {
    forbid(
        "idem-runtime/src/http",
        &["crate::store", "Store::", "sqlx"],
        &[],
    );
    for file in ["body.rs", "key.rs", "response.rs", "policy.rs"] {
        let place = format!("idem-runtime/src/http/{file}");
        forbid(&place, &["axum", "crate::engine"], &[]);
    }
}

#[test]
fn decisions_are_pure() {
    for file in ["transition", "record"] {
        let place = format!("idem-runtime/src/{file}");
        forbid(&place, &["async ", "tokio", "Clock", "sqlx"], &[]);
    }
}

#[test]
fn flights_know_no_store() {
    forbid(
        "idem-runtime/src/singleflight.rs",
        &["crate::store", "crate::engine", "crate::transition"],
        &[],
    );
}

#[test]
fn nothing_in_production_names_the_test_module() {
    for folder in [
        "admin",
        "store",
        "engine",
        "codec",
        "canonical",
        "identity",
        "http",
    ] {
        let place = format!("idem-runtime/src/{folder}");
        forbid(&place, &["crate::testing"], &[]);
    }
}

#[test]
fn only_the_clock_asks_for_the_time_and_nothing_reads_the_environment_or_prints() {
    let words = [
        "SystemTime::now",
        "std::time::Instant",
        "std::env",
        "println!",
        "eprintln!",
    ];
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("idem-runtime/src")) {
        let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
        if !name.ends_with("clock.rs") && !name.components().any(|c| c.as_os_str() == "testing") {
            forbid(name.to_str().unwrap(), &words, &[]);
        }
    }
}

#[test]
fn the_macro_needs_no_runtime_and_generated_code_names_only_private_items() {
    forbid(
        "idem-macros/src",
        &["idem_runtime::", "tokio::", "sqlx"],
        &["//", "tokio::test", "\""],
    );
}
