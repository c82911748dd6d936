//! Another process takes the whole `SQLite` file for itself, on and off.

use std::io::BufRead as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use idem::sqlx::{Connection as _, Executor as _};
use idem::store::SqliteStore;
use idem::{Engine, Error};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};

const KEYS: usize = 100;
const TTL: Duration = Duration::from_secs(3_600);
/// How long the file is held, and left alone.
const HELD: Duration = Duration::from_millis(40);

/// The other process: holds the file that a line of its input names, and says
/// so each time.
#[tokio::test]
#[ignore = "it is the process that another test starts"]
async fn holder() {
    let mut path = String::new();
    std::io::stdin().lock().read_line(&mut path).unwrap();
    if path.is_empty() {
        return;
    }
    let options = SqliteConnectOptions::new()
        .filename(path.trim_end())
        .busy_timeout(Duration::from_secs(30));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    loop {
        connection.execute("begin exclusive").await.unwrap();
        println!("\nheld");
        tokio::time::sleep(HELD).await;
        connection.execute("rollback").await.unwrap();
        tokio::time::sleep(HELD).await;
    }
}

struct Holder {
    said: tokio::io::Lines<BufReader<ChildStdout>>,
    process: Child,
}

impl Holder {
    async fn start(path: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "sqlite_faults::holder",
                "--ignored",
                "--nocapture",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let line = format!("{}\n", path.display());
        let mut stdin = process.stdin.take().unwrap();
        stdin.write_all(line.as_bytes()).await.unwrap();
        let said = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { said, process }
    }

    /// Waits until it holds the file once more.
    async fn holds(&mut self) {
        while self.said.next_line().await.unwrap().unwrap() != "held" {}
    }
}

async fn engine(path: &Path) -> Engine {
    let store = SqliteStore::open(path).await.unwrap();
    Engine::builder(store).build().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_holds_the_file_on_and_off_causes_no_error_and_no_second_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let engines = [engine(&path).await, engine(&path).await];
    let mut holder = Holder::start(&path).await;
    holder.holds().await;
    let runs: Arc<Vec<_>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let mut calls = tokio::task::JoinSet::new();
    for key in 0..KEYS {
        for engine in &engines {
            let runs = Arc::clone(&runs);
            calls.spawn(engine.call("held", &key, TTL).run(async move {
                runs[key].fetch_add(1, Ordering::SeqCst);
                Ok::<_, Error>(key)
            }));
        }
        if key % 20 == 19 {
            // Goes on when the file has been held again.
            holder.holds().await;
        }
    }
    let answers = calls.join_all().await;
    let errors: Vec<_> = answers.iter().filter(|answer| answer.is_err()).collect();
    assert_eq!(errors, Vec::<&Result<usize, Error>>::new());
    for (key, runs) in runs.iter().enumerate() {
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{key}");
    }
    // Killed while it holds the file: the lock ends with the process.
    holder.holds().await;
    holder.process.kill().await.unwrap();
    let call = engines[0].call("held", &KEYS, TTL);
    assert_eq!(call.run(async { Ok::<usize, Error>(0) }).await, Ok(0));
}
