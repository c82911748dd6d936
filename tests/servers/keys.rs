//! Keys that databases like to confuse, cut or refuse are all their own.

use std::time::Duration;

use idem::store::{MemoryStore, SqliteStore};
use idem::{Engine, Error, How};

use crate::place::{Server, on_each_server, prefix};

const TTL: Duration = Duration::from_secs(3_600);

on_each_server! {
    and redis:
    keys_that_look_alike_are_independent,
}

fn keys() -> Vec<String> {
    let mut keys: Vec<String> = [
        // Case, trailing space, both forms of é, and its base.
        "Key-1",
        "key-1",
        "Key-1 ",
        "Key-1  ",
        " Key-1",
        "\u{e9}",
        "e\u{301}",
        "e",
        "\u{c9}",
        // NUL, and what is left if it ends a text.
        "a",
        "a\0",
        "a\0b",
        "\0",
        "\0\0",
        "\u{1f600}",
        "\u{1f601}",
        "\u{ffff}",
        "%",
        "_",
        "\\",
        "'",
        "''",
        "\"",
        "; --",
    ]
    .map(str::to_owned)
    .to_vec();
    keys.extend([254, 255, 256, 257].map(|len| "k".repeat(len)));
    let long = "x".repeat(1024 * 1024);
    keys.extend([format!("{long}1"), format!("{long}2"), long]);
    keys
}

/// Calls each key once on one engine and again on the other.
async fn are_independent(first: &Engine, second: &Engine) {
    for (engine, how) in [(first, How::Executed), (second, How::Replayed)] {
        for (number, key) in keys().into_iter().enumerate() {
            let call = engine.call("keys", &key, TTL).label(&key);
            let (answer, outcome) = call
                .run_detailed(async move { Ok::<_, Error>(number) })
                .await;
            let start: String = key.chars().take(20).collect();
            assert_eq!((answer, outcome.how), (Ok(number), how), "{start:?}");
        }
    }
}

async fn keys_that_look_alike_are_independent(server: Server) {
    let (url, prefix) = (server.url(), prefix());
    let first = server.open(&url, &prefix, 2).await.build().await.unwrap();
    let second = server.open(&url, &prefix, 2).await.build().await.unwrap();
    are_independent(&first, &second).await;
}

#[tokio::test]
async fn they_are_in_memory() {
    let store = MemoryStore::new();
    let first = Engine::builder(store.clone()).build().await.unwrap();
    let second = Engine::builder(store).build().await.unwrap();
    are_independent(&first, &second).await;
}

#[tokio::test]
async fn they_are_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open(folder.path().join("keys.db"));
    let first = Engine::builder(open().await.unwrap())
        .build()
        .await
        .unwrap();
    let second = Engine::builder(open().await.unwrap())
        .build()
        .await
        .unwrap();
    are_independent(&first, &second).await;
}
