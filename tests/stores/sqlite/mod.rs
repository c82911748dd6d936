//! The store in a `SQLite` file, and what can go wrong with a file.

mod damage;
mod existing;
mod operators;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Label, Recorded};
use idem::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use idem::sqlx::{self, Connection as _, Executor as _};
use idem::store::{
    Complete, Ending, Finding, GiveBack, Holder, Lease, Meta, Release, Reserve, Reserved,
    SqliteStore, Store, Takeover, Won, Written,
};
use idem::testing::ManualClock;
use idem::testing::conformance::{self, Harness};
use idem::{StoreError, StoreErrorKind};

struct Sqlite(tempfile::TempDir);

impl Harness for Sqlite {
    async fn open(&self, place: &str, clock: ManualClock) -> Result<Arc<dyn Store>, StoreError> {
        let path = self.0.path().join(place);
        Ok(Arc::new(
            SqliteStore::options(path).clock(clock).open().await?,
        ))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_keeps_the_contract() {
    let harness = Sqlite(tempfile::tempdir().unwrap());
    println!("{}", conformance::run_all(harness).await);
}

const SECOND: i64 = 1_000_000;
const LEASE: i64 = 30 * SECOND;
const GRACE: i64 = 5 * SECOND;
const LAPSE: Duration = Duration::from_micros(35 * 1_000_000 + 1);

fn request(key: u8, claim: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([key; 32]),
        operation: "shop.charge".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: LEASE,
        grace_us: GRACE,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

fn rerun(key: u8, claim: u8) -> Reserve {
    Reserve {
        takeover: Takeover::Rerun,
        ..request(key, claim)
    }
}

async fn win(store: &SqliteStore, request: &Reserve) -> (Holder, Won) {
    match store.reserve(request).await.unwrap() {
        Reserved::Won(won) => {
            let holder = Holder {
                id: request.id,
                claim: request.claim,
                fence: won.fence,
            };
            (holder, won)
        }
        other => panic!("expected to win, got {other:?}"),
    }
}

fn completion(holder: Holder) -> Complete {
    let answer = Recorded::new(&holder.id, "json", false, b"42".to_vec());
    Complete {
        holder,
        ending: Ending::Answer(answer),
        ttl_us: None,
    }
}

fn meta(number: u8) -> Meta {
    Meta {
        format: "idem/1".to_owned(),
        instance: [number; 16],
        secret_check: [0; 32],
    }
}

/// A file, and a connection that knows nothing of the store.
struct File {
    path: PathBuf,
    clock: ManualClock,
    _folder: tempfile::TempDir,
}

impl File {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            path: folder.path().join("shop.db"),
            clock: ManualClock::new(),
            _folder: folder,
        }
    }

    async fn open(&self) -> SqliteStore {
        let options = SqliteStore::options(&self.path).clock(self.clock.clone());
        options.open().await.unwrap()
    }

    async fn raw(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(&self.path);
        SqliteConnection::connect_with(&options).await.unwrap()
    }

    async fn execute(&self, sql: &'static str) -> u64 {
        let mut conn = self.raw().await;
        // What a damaged file holds is not what the schema allows.
        conn.execute("PRAGMA ignore_check_constraints = ON")
            .await
            .unwrap();
        let rows = conn.execute(sql).await.unwrap().rows_affected();
        conn.close().await.unwrap();
        rows
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_new_file_is_readable_by_its_owner_only() {
    let file = File::new();
    let store = file.open().await;
    win(&store, &request(1, 1)).await;
    for beside in ["", "-wal", "-shm"] {
        let mut path = file.path.clone().into_os_string();
        path.push(beside);
        assert_eq!(mode(Path::new(&path)), 0o600, "{path:?}");
    }
    let findings = store.check().await.unwrap();
    assert!(!findings.contains(&Finding::ReadableByOthers));
}

#[tokio::test]
async fn a_fresh_file_gives_nothing_to_find() {
    let file = File::new();
    assert_eq!(file.open().await.check().await.unwrap(), []);
}

#[tokio::test]
async fn a_migration_that_fails_changes_nothing() {
    let file = File::new();
    let options = SqliteConnectOptions::new()
        .filename(&file.path)
        .create_if_missing(true);
    let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
    // In the way of the newest migration.
    conn.execute("CREATE TABLE idem_steps (other INTEGER)")
        .await
        .unwrap();
    SqliteStore::open(&file.path).await.unwrap_err();
    let tables: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_schema ORDER BY name")
        .fetch_all(&mut conn)
        .await
        .unwrap();
    assert_eq!(tables, ["idem_steps"]);
}

#[tokio::test]
async fn a_file_that_others_may_read_is_a_finding() {
    let file = File::new();
    drop(file.open().await);
    std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let store = file.open().await;
    let findings = store.check().await.unwrap();
    assert!(findings.contains(&Finding::ReadableByOthers));
    assert_eq!(mode(&file.path), 0o640, "it is the operator's to change");
}

#[tokio::test]
async fn a_database_in_memory_is_refused() {
    for path in [":memory:", "", "file::memory:?cache=shared", "file:shop.db"] {
        let error = SqliteStore::open(path).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{path:?}");
        assert!(error.to_string().contains("MemoryStore"), "{error}");
    }
    for url in ["sqlite::memory:", "sqlite://:memory:", "sqlite://"] {
        assert!(idem::connect(url).await.is_err(), "{url}");
    }
    assert!(!Path::new(":memory:").exists());
}

#[tokio::test]
async fn a_path_that_cannot_be_a_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing").join("shop.db");
    let error = SqliteStore::open(missing).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "buy milk\n".repeat(1_000)).unwrap();
    let error = SqliteStore::open(&text).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(
        std::fs::read_to_string(&text)
            .unwrap()
            .starts_with("buy milk")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_opened_by_eight_at_once_has_one_schema() {
    for _ in 0..4 {
        let file = File::new();
        let start = Arc::new(tokio::sync::Barrier::new(8));
        let mut tasks = Vec::new();
        for number in 1..=8 {
            let (path, start) = (file.path.clone(), Arc::clone(&start));
            tasks.push(tokio::spawn(async move {
                start.wait().await;
                let store = SqliteStore::open(path).await.unwrap();
                let pinned = store.pin(&meta(number)).await.unwrap();
                let won = store.reserve(&request(1, number)).await.unwrap();
                (pinned, matches!(won, Reserved::Won(_)))
            }));
        }
        let mut replies = Vec::new();
        for task in tasks {
            replies.push(task.await.unwrap());
        }
        assert!(replies.iter().all(|(meta, _)| *meta == replies[0].0));
        assert_eq!(replies.iter().filter(|(_, won)| *won).count(), 1);
        let mut conn = file.raw().await;
        let versions: Vec<i64> = sqlx::query_scalar("SELECT version FROM idem_schema")
            .fetch_all(&mut conn)
            .await
            .unwrap();
        assert_eq!(versions, [1, 2, 3]);
    }
}

#[tokio::test]
async fn a_schema_of_a_later_version_is_refused() {
    let file = File::new();
    drop(file.open().await);
    file.execute("INSERT INTO idem_schema VALUES (1000, 0)")
        .await;
    let error = SqliteStore::open(&file.path).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("upgrade"), "{error}");
}

#[tokio::test]
async fn a_file_opened_again_keeps_its_records() {
    let file = File::new();
    let store = file.open().await;
    store.pin(&meta(1)).await.unwrap();
    let (done, _) = win(&store, &request(1, 1)).await;
    assert_eq!(
        store.complete(&completion(done)).await.unwrap(),
        Written::Done
    );
    let (running, _) = win(&store, &request(2, 2)).await;
    drop(store);

    let store = file.open().await;
    assert_eq!(store.pin(&meta(2)).await.unwrap(), meta(1));
    let reply = store.reserve(&request(1, 9)).await.unwrap();
    assert!(matches!(reply, Reserved::Completed { answer, .. } if answer.bytes == b"42"));
    let expected = Reserved::InProgress {
        left_us: LEASE + GRACE,
    };
    assert_eq!(store.reserve(&request(2, 9)).await.unwrap(), expected);
    let reply = store.complete(&completion(running)).await.unwrap();
    assert_eq!(reply, Written::Done, "its holder may have lived on");
}

#[tokio::test]
async fn what_operators_read_is_stored_as_given() {
    let file = File::new();
    let store = file.open().await;
    let full = Reserve {
        label: Some(Label::new("order 7 'größe'")),
        scope: Some([7; 32]),
        ..request(1, 1)
    };
    win(&store, &full).await;
    win(&store, &request(2, 2)).await;
    type Row = (String, Option<String>, Option<Vec<u8>>);
    let rows: Vec<Row> =
        sqlx::query_as("SELECT operation, label, scope_digest FROM idem_records ORDER BY id")
            .fetch_all(&mut file.raw().await)
            .await
            .unwrap();
    assert_eq!(
        rows[0],
        (
            "shop.charge".to_owned(),
            full.label.map(|label| label.as_str().to_owned()),
            Some(vec![7; 32])
        )
    );
    assert_eq!(rows[1], ("shop.charge".to_owned(), None, None));
}

#[tokio::test]
async fn a_clock_that_stepped_back_before_a_restart_revives_nothing() {
    let file = File::new();
    let store = file.open().await;
    store.pin(&meta(1)).await.unwrap();
    let (late, won) = win(&store, &rerun(1, 1)).await;
    file.clock.advance(LAPSE);
    file.clock.advance(Duration::from_secs(2));
    win(&store, &request(2, 2)).await;
    drop(store);

    file.clock.step(-3_600 * SECOND);
    let store = file.open().await;
    let (_, next) = win(&store, &rerun(1, 3)).await;
    assert_eq!(next.attempt, 2, "it had lapsed, and still has");
    assert!(next.fence > won.fence);
    let written = store.complete(&completion(late)).await.unwrap();
    assert_eq!(written, Written::Superseded);
    let left = store.reserve(&rerun(1, 4)).await.unwrap();
    let expected = Reserved::InProgress {
        left_us: LEASE + GRACE,
    };
    assert_eq!(left, expected, "a lease starts at the store's time");
    let renewed = Lease {
        holder: Holder {
            id: late.id,
            claim: Claim::from_bytes([3; 16]),
            fence: next.fence,
        },
        lease_us: LEASE,
    };
    let mut renewer = store.renewer().await.unwrap();
    assert_eq!(renewer.renew(&[renewed]).await, Ok(vec![true]));
    assert_eq!(store.reserve(&rerun(1, 5)).await.unwrap(), expected);
}

#[tokio::test]
async fn a_store_far_ahead_of_its_clock_is_a_finding() {
    let file = File::new();
    let store = file.open().await;
    store.pin(&meta(1)).await.unwrap();
    file.clock.advance(Duration::from_secs(2 * 86_400));
    win(&store, &request(1, 1)).await;
    let behind = Finding::ClockBehind;
    assert!(!store.check().await.unwrap().contains(&behind));
    file.clock.step(-(86_400 + 10) * SECOND);
    assert!(store.check().await.unwrap().contains(&behind));
}

#[tokio::test]
async fn a_bad_job_fails_alone() {
    let file = File::new();
    let store = file.open().await;
    let mut completions = Vec::new();
    for key in 1..=8 {
        let (holder, _) = win(&store, &request(key, key)).await;
        completions.push(completion(holder));
    }
    // One row cannot be written, as if its page were on a bad sector.
    let mut other = file.raw().await;
    other
        .execute(
            "CREATE TRIGGER bad BEFORE INSERT ON idem_records
             WHEN NEW.claim = x'05050505050505050505050505050505'
             BEGIN SELECT RAISE(ABORT, 'bad sector'); END",
        )
        .await
        .unwrap();
    // While the file is locked the jobs queue up, and become one batch.
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let queued: Vec<_> = completions
        .into_iter()
        .map(|request| {
            let store = store.clone();
            tokio::spawn(async move { store.complete(&request).await })
        })
        .collect();
    tokio::task::yield_now().await;
    other.execute("COMMIT").await.unwrap();
    let mut replies = Vec::new();
    for reply in queued {
        replies.push(reply.await.unwrap());
    }
    let error = replies.remove(4).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Permanent);
    assert!(!error.is_ambiguous(), "nothing of it was written");
    assert_eq!(replies, vec![Ok(Written::Done); 7]);
    for key in 1..=8 {
        let reply = store.reserve(&request(key, 100 + key)).await.unwrap();
        let recorded = matches!(reply, Reserved::Completed { .. });
        assert_eq!(recorded, key != 5, "key {key}");
    }
    other.execute("DROP TRIGGER bad").await.unwrap();
    let reply = store.reserve(&request(5, 5)).await.unwrap();
    assert!(matches!(reply, Reserved::Won(Won { resent: true, .. })));
}

#[tokio::test]
async fn what_nobody_waits_for_any_more_is_not_done_when_the_lock_is_free() {
    let file = File::new();
    let store = file.open().await;
    let (holder, _) = win(&store, &request(1, 1)).await;
    let release = Release {
        holder,
        ttl_us: None,
        probed: false,
    };
    assert_eq!(store.release(&release).await, Ok(Written::Done));
    let mut other = file.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    for claim in 2..=5 {
        let request = request(1, claim);
        let soon = Duration::from_millis(20);
        let late = tokio::time::timeout(soon, store.reserve(&request)).await;
        late.unwrap_err();
    }
    other.execute("COMMIT").await.unwrap();
    // Asked last, so answered last.
    let (_, won) = win(&store, &request(1, 6)).await;
    assert_eq!(won.attempt, 2, "of those that gave up, none has the key");
}

#[tokio::test]
async fn a_full_disk_runs_nothing_and_loses_nothing() {
    let file = File::new();
    let store = file.open().await;
    let (holder, _) = win(&store, &request(1, 1)).await;
    // A trigger stands in for it: the page limit is a connection's own.
    file.execute(
        "CREATE TRIGGER full BEFORE INSERT ON idem_records
         BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    .await;
    assert!(store.reserve(&request(2, 2)).await.is_err());
    assert!(store.complete(&completion(holder)).await.is_err());
    file.execute("DROP TRIGGER full").await;
    assert_eq!(win(&store, &request(2, 3)).await.1.attempt, 1);
    let written = store.complete(&completion(holder)).await.unwrap();
    assert_eq!(written, Written::Done);
}

/// Makes the transaction that writes a record of claim 5 fail at `COMMIT`, and
/// not before.
async fn fail_commits(file: &File) {
    for sql in [
        "CREATE TABLE nowhere (id INTEGER PRIMARY KEY)",
        "CREATE TABLE orphans (id INTEGER REFERENCES nowhere DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TRIGGER orphan AFTER INSERT ON idem_records
         WHEN NEW.claim = x'05050505050505050505050505050505'
         BEGIN INSERT INTO orphans VALUES (1); END",
    ] {
        file.execute(sql).await;
    }
}

#[tokio::test]
async fn a_commit_that_fails_may_have_happened_and_the_next_one_is_not_harmed() {
    let file = File::new();
    let store = file.open().await;
    fail_commits(&file).await;
    let error = store.reserve(&request(5, 5)).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    // The connection holds no lock and no half of a transaction.
    win(&store, &request(1, 1)).await;
    file.execute("DROP TRIGGER orphan").await;
    let (_, won) = win(&store, &request(5, 6)).await;
    assert_eq!(won.attempt, 1, "it was rolled back");
}

#[tokio::test]
async fn what_the_renewal_thread_stopped_waiting_for_is_not_done() {
    let file = File::new();
    let store = file.open().await;
    let (holder, _) = win(&store, &request(1, 1)).await;
    let mut renewer = store.renewer().await.unwrap();
    let give = GiveBack {
        id: holder.id,
        claim: holder.claim,
        ttl_us: None,
    };
    let mut other = file.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let soon = Duration::from_millis(20);
    let late = tokio::time::timeout(soon, renewer.give_back(&give)).await;
    late.unwrap_err();
    other.execute("COMMIT").await.unwrap();
    // Asked last, so answered last.
    let lease = Lease {
        holder,
        lease_us: LEASE,
    };
    assert_eq!(renewer.renew(&[lease]).await, Ok(vec![true]));
}

#[tokio::test]
async fn a_look_waits_for_no_lock_of_another_nor_for_the_writer_that_does() {
    let file = File::new();
    let store = file.open().await;
    let (holder, _) = win(&store, &request(1, 1)).await;
    assert_eq!(store.complete(&completion(holder)).await, Ok(Written::Done));
    let (running, _) = win(&store, &request(3, 1)).await;
    let mut other = file.raw().await;
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let replay = async |claim| {
        let reply = store.reserve(&request(1, claim)).await.unwrap();
        assert!(matches!(reply, Reserved::Completed { .. }), "{reply:?}");
    };
    for claim in 2..=20 {
        replay(claim).await;
    }
    // One that looks first, and one that only writes.
    let reserves = tokio::spawn({
        let store = store.clone();
        async move { win(&store, &request(2, 2)).await }
    });
    // It has been polled: the writer has it, or will have it after this look.
    tokio::task::yield_now().await;
    for claim in 21..=40 {
        replay(claim).await;
    }
    let (open, _) = store.reader_connections();
    assert!((1..=4).contains(&open), "{open}");
    assert!(!reserves.is_finished());
    other.execute("COMMIT").await.unwrap();
    reserves.await.unwrap();

    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let completes = tokio::spawn({
        let store = store.clone();
        async move { store.complete(&completion(running)).await }
    });
    tokio::task::yield_now().await;
    for claim in 41..=60 {
        replay(claim).await;
    }
    assert!(!completes.is_finished());
    other.execute("COMMIT").await.unwrap();
    assert_eq!(completes.await.unwrap(), Ok(Written::Done));
}
