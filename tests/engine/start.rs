//! What keeps an engine from starting, and what it says.

use std::time::Duration;

use idem::store::{Finding, MemoryStore, Meta, SqliteStore, Store as _};
use idem::{Engine, Error, Secret, StoreErrorKind};

fn secret(byte: u8) -> Secret {
    Secret::new([byte; 32]).unwrap()
}

fn misconfigured(built: Result<Engine, Error>) -> String {
    match built {
        Err(Error::Store(error)) if error.kind() == StoreErrorKind::Misconfigured => {
            error.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn two_engines_with_different_secrets_do_not_share_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let open = || SqliteStore::open(&path);
    Engine::builder(open().await.unwrap())
        .secret(secret(1))
        .build()
        .await
        .unwrap();
    let other = Engine::builder(open().await.unwrap()).secret(secret(2));
    let text = misconfigured(other.build().await);
    assert!(text.contains("another secret"), "{text}");
    let none = Engine::builder(open().await.unwrap());
    let text = misconfigured(none.build().await);
    assert!(text.contains("another secret"), "{text}");
    // It cannot be accepted away, and another namespace is the same store.
    let same = Engine::builder(open().await.unwrap())
        .namespace("other")
        .secret(secret(1));
    same.build().await.unwrap();
}

#[tokio::test]
async fn another_identity_format_does_not_start() {
    let store = MemoryStore::new();
    let meta = Meta {
        format: "idem/2".to_owned(),
        instance: [7; 16],
        secret_check: [7; 32],
    };
    store.pin(&meta).await.unwrap();
    let text = misconfigured(Engine::builder(store).build().await);
    assert!(text.contains("identity format"), "{text}");
}

#[tokio::test]
async fn knobs_outside_of_their_limits_are_refused() {
    let builder = || Engine::builder(MemoryStore::new());
    let day = Duration::from_secs(86_400);
    for (built, what) in [
        (builder().namespace("").build().await, "namespace"),
        (
            builder().lease(Duration::from_millis(99)).build().await,
            "lease",
        ),
        (builder().lease(day * 2).build().await, "lease"),
        (builder().grace(day * 2).build().await, "grace"),
        (
            builder().max_run(Duration::from_secs(1)).build().await,
            "max_run",
        ),
        (
            builder().max_takeovers(1_001).build().await,
            "max_takeovers",
        ),
        (builder().answer_limit(0).build().await, "answer limit"),
        (
            builder().store_timeout(Duration::ZERO).build().await,
            "store timeout",
        ),
        (
            builder()
                .reserve_timeout(Duration::from_secs(1))
                .build()
                .await,
            "reserve timeout",
        ),
        (
            builder()
                .reserve_timeout(Duration::from_secs(601))
                .build()
                .await,
            "reserve timeout",
        ),
        (
            builder().reserve_timeout(Duration::MAX).build().await,
            "reserve timeout",
        ),
    ] {
        match built {
            Err(Error::Misuse { reason }) => assert!(reason.contains(what), "{reason}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_strict_engine_makes_warnings_errors_until_they_are_accepted_by_name() {
    let strict = || Engine::builder(MemoryStore::new()).strict();
    let text = misconfigured(strict().build().await);
    assert!(text.contains("accept_loss"), "{text}");
    assert!(text.contains("this process only"), "{text}");
    strict()
        .accept_loss(Finding::NotShared)
        .accept_loss(Finding::NoSecret)
        .build()
        .await
        .unwrap();
}

#[tokio::test]
async fn a_url_names_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let url = format!("sqlite://{}", path.display());
    idem::connect(&url).await.unwrap();
    assert!(path.exists());
    for (url, what) in [
        ("mongo://localhost", "scheme"),
        ("sqlite://", "sqlite://PATH"),
        ("sqlite://a.db?mode=ro", "sqlite://PATH"),
        ("sqlite::memory:", "MemoryStore"),
    ] {
        let error = idem::connect(url).await.unwrap_err().to_string();
        assert!(error.contains(what), "{url}: {error}");
    }
}
