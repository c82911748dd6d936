//! Records that an earlier version wrote are replayed as they were, or refused
//! for their own reason, and never run again.
//!
//! `golden/v1.db` is a `SQLite` file of schema version 1 and identity format
//! `idem/1`; `golden/v1.entries` has the bytes of its answers, a line each. They
//! are never edited: what they hold is in other people's databases. When the
//! format of rows, answers or identities gets a new version, write new files
//! beside the old ones with
//! `cargo test --test stores -- --ignored write_the_golden_files` (it writes to
//! `target/golden`), give them the next number, and test both.

use std::path::{Path, PathBuf};
use std::time::Duration;

use idem::identity::{Identity, RecordId};
use idem::record::{Claim, Recorded, VersionBytes};
use idem::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use idem::sqlx::{self, Connection as _, Executor as _, Row as _};
use idem::store::{
    Complete, Ending, Holder, MemoryStore, Reserve, Reserved, SqliteStore, Store, Takeover, Written,
};
use idem::testing::ManualClock;
use idem::{
    Engine, Error, OnInProgress, PlainCall, Secret, StoreErrorKind, TombstoneReason, Ttl,
    UnknownReason, on_error,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Charge {
    id: String,
    cents: u64,
    rate: f64,
    note: Option<String>,
    lines: Vec<(u8, bool)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Refusal {
    Declined { code: i32 },
    Engine(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the card was declined: größe \"7\"")
    }
}

fn charge() -> Charge {
    Charge {
        id: "ch_größe \u{1f9fe}\n\"7\"".to_owned(),
        cents: u64::MAX,
        rate: 0.1 + 0.2,
        note: None,
        lines: vec![(0, true), (255, false)],
    }
}

const DECLINED: Refusal = Refusal::Declined { code: -51 };
const OPERATION: &str = "golden.charge";

fn secret() -> Secret {
    Secret::new(*b"golden, and no secret of anybody").unwrap()
}

async fn engine(store: impl Store) -> Engine {
    let builder = Engine::builder(store).namespace("golden").secret(secret());
    builder.answer_limit(256).build().await.unwrap()
}

fn call(engine: &Engine, key: &str) -> PlainCall {
    engine
        .call(OPERATION, key, Ttl::Forever)
        .payload(&(4_200_u32, "EUR"))
        .scope("tenant")
        .label("order 7")
        .on_in_progress(OnInProgress::Reject)
}

/// A reservation by hand, of what no engine leaves behind in a test.
fn request(key: &str, version: Option<u8>) -> Reserve {
    let identity = Identity::new(Some(&secret()), "golden");
    let scope = idem::canonical::to_vec("tenant").unwrap();
    let key = idem::canonical::to_vec(key).unwrap();
    let id = identity.record_id(OPERATION, Some(&scope), &key);
    let values: [&[u8]; 2] = [b"4200", b"\"EUR\""];
    Reserve {
        id,
        operation: OPERATION.to_owned(),
        label: None,
        scope: Some(identity.scope_digest(&scope)),
        fingerprint: identity.fingerprint(&id, &values),
        elements: Vec::new(),
        claim: Claim::from_bytes([7; 16]),
        lease_us: 30_000_000,
        grace_us: 5_000_000,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: version.map(|number| VersionBytes::new(vec![number]).unwrap()),
    }
}

async fn record(store: &impl Store, request: &Reserve, answer: Recorded) {
    let Reserved::Won(won) = store.reserve(request).await.unwrap() else {
        panic!("the key is taken");
    };
    let complete = Complete {
        holder: Holder {
            id: request.id,
            claim: request.claim,
            fence: won.fence,
        },
        ending: Ending::Answer(answer),
        ttl_us: None,
    };
    assert_eq!(store.complete(&complete).await, Ok(Written::Done));
}

/// Never to be run: every golden record has an answer or is refused.
#[expect(clippy::unused_async, reason = "it stands for a body")]
async fn no_body<T>() -> T {
    panic!("a body ran on a golden record")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "writes the golden files of the present version"]
async fn write_the_golden_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/golden");
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("new.db");
    let options = SqliteStore::options(&path).clock(ManualClock::new());
    let store = options.open().await.unwrap();
    let engine = engine(store.clone()).await;
    let ok = call(&engine, "ok").run(async { Ok::<_, Refusal>(charge()) });
    assert_eq!(ok.await, Ok(charge()));
    let err = call(&engine, "err").run(async { Err::<Charge, _>(DECLINED) });
    assert_eq!(err.await, Err(DECLINED));
    let text = call(&engine, "text").on_error(on_error::StoreText);
    let text = text.run(async { Err::<Charge, _>(DECLINED) });
    assert_eq!(text.await, Err(DECLINED));
    let note = Some("x".repeat(300));
    let large = Charge { note, ..charge() };
    let large = call(&engine, "large").run(async { Ok::<_, Refusal>(large) });
    assert!(large.await.is_ok());
    let rate = f64::NAN;
    let lossy = Charge { rate, ..charge() };
    let lossy = call(&engine, "lossy").run(async { Ok::<_, Refusal>(lossy) });
    assert!(lossy.await.is_ok());
    let unknown = call(&engine, "unknown").on_error(on_error::Unknown);
    let unknown = unknown.run(async { Err::<Charge, _>(DECLINED) });
    assert_eq!(unknown.await, Err(DECLINED));
    let released = call(&engine, "released").on_error(on_error::Release);
    let released = released.run(async { Err::<Charge, _>(DECLINED) });
    assert_eq!(released.await, Err(DECLINED));
    let running = store.reserve(&request("running", None)).await.unwrap();
    assert!(matches!(running, Reserved::Won(_)));
    let version = request("version", Some(5));
    let answer = Recorded::new(&version.id, "json", false, b"5".to_vec());
    record(&store, &version, answer).await;
    drop((engine, store));

    let options = SqliteConnectOptions::new().filename(&path);
    let mut raw = SqliteConnection::connect_with(&options).await.unwrap();
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        .await
        .unwrap();
    let rows = sqlx::query("SELECT id, codec, failed, answer, answer_digest FROM idem_records WHERE answer IS NOT NULL ORDER BY rowid")
        .fetch_all(&mut raw)
        .await
        .unwrap();
    let hex = |bytes: Vec<u8>| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    let lines = rows.iter().map(|row| {
        let (id, codec, failed) = (
            hex(row.get(0)),
            row.get::<String, _>(1),
            row.get::<bool, _>(2),
        );
        format!(
            "{id} {codec} {failed} {} {}\n",
            hex(row.get(3)),
            hex(row.get(4))
        )
    });
    std::fs::write(folder.join("new.entries"), lines.collect::<String>()).unwrap();
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/stores/golden")
        .join(name)
}

async fn replays(engine: &Engine) {
    let ok = call(engine, "ok").run(no_body::<Result<Charge, Refusal>>());
    assert_eq!(ok.await, Ok(charge()));
    let err = call(engine, "err").run(no_body::<Result<Charge, Refusal>>());
    assert_eq!(err.await, Err(DECLINED));
    let text = call(engine, "text").on_error(on_error::StoreText);
    let message = DECLINED.to_string();
    let text = text.run(no_body::<Result<Charge, Refusal>>()).await;
    assert_eq!(text, Err(Refusal::Engine(Error::Failed { message })));
}

#[tokio::test]
async fn version_1_of_a_file_is_replayed_or_refused_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    std::fs::copy(golden("v1.db"), &path).unwrap();
    let clock = ManualClock::new();
    let options = SqliteStore::options(&path).clock(clock.clone());
    let store = options.open().await.unwrap();
    let engine = engine(store.clone()).await;
    replays(&engine).await;
    // Also by somebody with another payload: never.
    let other = call(&engine, "ok")
        .payload(&1)
        .run(no_body::<Result<Charge, Refusal>>());
    let mismatch = matches!(
        other.await,
        Err(Refusal::Engine(Error::PayloadMismatch { .. }))
    );
    assert!(mismatch);

    let refused = async |key: &str| -> Error {
        let body = no_body::<Result<Charge, Refusal>>();
        match call(&engine, key).run(body).await {
            Err(Refusal::Engine(error)) => error,
            other => panic!("{key}: {other:?}"),
        }
    };
    let reason = TombstoneReason::TooLarge;
    assert_eq!(refused("large").await, Error::NotReplayable { reason });
    let reason = TombstoneReason::NotDecodable;
    assert_eq!(refused("lossy").await, Error::NotReplayable { reason });
    let unknown = refused("unknown").await;
    let failed = matches!(
        unknown,
        Error::UnknownOutcome {
            reason: UnknownReason::Failed,
            exhausted: false,
            ..
        }
    );
    assert!(failed, "{unknown}");
    assert!(refused("running").await.is_in_progress());
    clock.advance(Duration::from_secs(36));
    let lapsed = refused("running").await;
    assert!(matches!(
        lapsed,
        Error::UnknownOutcome {
            reason: UnknownReason::Lapsed,
            ..
        }
    ));

    let reply = store.reserve(&request("version", Some(4))).await.unwrap();
    assert!(matches!(reply, Reserved::Stale { recorded, .. } if recorded.as_bytes() == [5]));
    let reply = store.reserve(&request("version", Some(5))).await.unwrap();
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer.bytes == b"5"));
    let newer = Reserve {
        claim: Claim::from_bytes([8; 16]),
        ..request("version", Some(6))
    };
    let reply = store.reserve(&newer).await.unwrap();
    assert!(matches!(reply, Reserved::Won(_)));

    // Released: the next caller runs, as the second attempt.
    let released = call(&engine, "released").run_detailed(async { Ok::<_, Refusal>(charge()) });
    let (answer, outcome) = released.await;
    assert_eq!(answer, Ok(charge()));
    assert_eq!(outcome.attempt, 2);
}

#[tokio::test]
async fn version_1_does_not_start_with_another_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.db");
    std::fs::copy(golden("v1.db"), &path).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    let other = Secret::new(*b"sixteen bytes or more").unwrap();
    let built = Engine::builder(store)
        .namespace("golden")
        .secret(other)
        .build()
        .await;
    let Err(Error::Store(error)) = built else {
        panic!("it started");
    };
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

#[tokio::test]
async fn version_1_of_answers_is_replayed_from_any_store() {
    let store = MemoryStore::new();
    let engine = engine(store.clone()).await;
    let entries = std::fs::read_to_string(golden("v1.entries")).unwrap();
    for entry in entries.lines() {
        let parts: Vec<_> = entry.split(' ').collect();
        let [id, codec, failed, answer, digest] = parts[..] else {
            panic!("an entry has five parts");
        };
        let id = RecordId::from_bytes(bytes(id).try_into().unwrap());
        let key = ["ok", "err", "text", "version"]
            .into_iter()
            .find(|key| request(key, None).id == id);
        let request = request(key.expect("an identity has changed"), None);
        let answer = Recorded {
            codec: codec.to_owned(),
            failed: failed == "true",
            bytes: bytes(answer),
            digest: bytes(digest).try_into().unwrap(),
        };
        assert!(answer.is_intact(&id));
        record(&store, &request, answer).await;
    }
    assert_eq!(store.len(), 4);
    replays(&engine).await;
}
