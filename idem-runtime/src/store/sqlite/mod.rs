//! Records in a `SQLite` file: the embedded default.
//!
//! Several processes of one host may share the file. One connection per process
//! writes, on a thread of its own, and packs what waits into one transaction;
//! a few connections read; one more renews leases and does nothing else.
//!
//! | | |
//! |---|---|
//! | atomic primitive | `BEGIN IMMEDIATE`, read, decide by [`transition`], write, `COMMIT` |
//! | clock | the host's, kept from stepping back behind stored times; microseconds |
//! | durability | WAL with `synchronous=FULL`: an acknowledged commit survives a power cut if the disk honours flushes ([`PRAGMA synchronous`](https://sqlite.org/pragma.html#pragma_synchronous)) |
//! | fail-over | none: one host, a local disk, never a network file system ([WAL](https://sqlite.org/wal.html)) |
//! | largest answer | the engine's limit |
//! | versions tested | 3.51.3, bundled |

mod admin;
mod error;
mod renewer;
mod rows;
mod schema;
mod standings;
mod statements;
mod steps;
mod time;
mod within;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use self::error::store_error;
use self::time::StoreTime;
pub(crate) use self::within::in_session;
use self::writer::{Done, Job, Op, Writer};
use super::{
    Capability, Complete, Finding, Holder, MarkUnknown, Meta, RecordStep, Release, Renewer,
    Reserve, Reserved, Standings, Step, Store, StoreAdmin, Sweep, Transactional, Written,
};
use crate::clock::{Clock, SystemClock};
use crate::error::{StoreError, StoreErrorKind};
use crate::record::Standing;
use crate::sync::{Arc, mpsc, oneshot};
use crate::transition;

/// Jobs that may wait for the writer before callers do.
const QUEUE: usize = 1024;

/// A store in a `SQLite` file; see the [module page](self).
///
/// Clones share the connections, which close when the last clone and its
/// engine are gone.
#[derive(Debug, Clone)]
pub struct SqliteStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    connect: SqliteConnectOptions,
    jobs: mpsc::Sender<Job>,
    readers: SqlitePool,
    time: StoreTime,
}

/// How to open a [`SqliteStore`].
#[derive(Debug, Clone)]
#[must_use = "call `open`"]
pub struct SqliteOptions {
    path: PathBuf,
    readers: u32,
    existing: bool,
    clock: Arc<dyn Clock>,
}

impl SqliteOptions {
    /// Opens only a file that is there and has the schema of this version:
    /// nothing is created or upgraded.
    pub fn existing(mut self) -> Self {
        self.existing = true;
        self
    }

    /// Sets how many connections read: 1 to 64, by default 4.
    pub fn readers(mut self, readers: u32) -> Self {
        self.readers = readers.clamp(1, 64);
        self
    }

    /// Sets the store's clock, for tests. All processes on one file must use
    /// the same time.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens the file, creating it (mode 0600) and its schema if needed and not
    /// ruled out by [`existing`](Self::existing).
    ///
    /// # Cancel safety
    /// Dropping the future leaves the file as it was or with its schema.
    ///
    /// # Errors
    /// If the path is no file of this host, or is not a database.
    pub async fn open(self) -> Result<SqliteStore, StoreError> {
        refuse_shared_memory(&self.path)?;
        if self.existing {
            // Before anything is asked of it that would change another's file.
            schema::require(&self.path).await?;
        } else {
            create_private(&self.path)?;
        }
        let connect = SqliteConnectOptions::new()
            .filename(&self.path)
            .create_if_missing(!self.existing)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(2))
            // The driver would log statements; what is slow is ours to report.
            .disable_statement_logging();
        let time = StoreTime::new(self.clock);
        let mut conn = schema::open(&connect).await?;
        if !self.existing {
            schema::migrate(&mut conn, time.host_us()).await?;
        }
        // The host's clock may have stepped back since the file was written.
        let stored: Option<i64> = sqlx::query_scalar(statements::CLOCK)
            .fetch_optional(&mut conn)
            .await
            .map_err(|error| store_error(&error))?;
        time.at_least(stored.unwrap_or(i64::MIN));
        let readers = SqlitePoolOptions::new()
            .max_connections(self.readers)
            // A ping before each read would cost more than the read.
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(connect.clone());
        let jobs = start_writer(Writer {
            options: connect.clone(),
            conn: Some(conn),
            time: time.clone(),
        })?;
        Ok(SqliteStore(Arc::new(Shared {
            path: self.path,
            connect,
            jobs,
            readers,
            time,
        })))
    }
}

impl SqliteStore {
    /// Opens the file, creating it and its schema if needed.
    ///
    /// # Concurrent calls
    /// Harmless from many processes at once.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the file as it was or with its schema.
    ///
    /// # Errors
    /// If the path is no file of this host, or is not a database. `:memory:`
    /// is refused: the renewal thread needs a connection of its own, and an
    /// in-memory database has one. Use [`MemoryStore`](super::MemoryStore).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("shop.db");
    /// use idem::store::SqliteStore;
    ///
    /// let store = SqliteStore::open(&path).await?;
    /// let engine = idem::Engine::builder(store).namespace("shop").build().await?;
    /// # drop(engine); Ok(()) }
    /// ```
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::options(path).open().await
    }

    /// Returns the options to open the file with.
    pub fn options(path: impl AsRef<Path>) -> SqliteOptions {
        SqliteOptions {
            path: path.as_ref().to_owned(),
            readers: 4,
            existing: false,
            clock: Arc::new(SystemClock),
        }
    }

    /// Returns the migrations as SQL, for people who run their own.
    #[must_use]
    pub fn schema_sql() -> String {
        schema::sql()
    }

    /// Opens the file of a URL: `sqlite://shop.db` is relative to the working
    /// directory, `sqlite:///var/lib/shop.db` absolute.
    pub(crate) async fn connect(url: &str) -> Result<Self, StoreError> {
        let path = url
            .strip_prefix("sqlite://")
            .or_else(|| url.strip_prefix("sqlite:"))
            .unwrap_or(url);
        if path.is_empty() || path.contains(['?', '#']) {
            return Err(misconfigured(
                "a SQLite URL is `sqlite://PATH`, without options",
            ));
        }
        Self::open(path).await
    }

    /// Returns how many reading connections are open and how many of those are
    /// idle, for tests.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn reader_connections(&self) -> (usize, usize) {
        let pool = &self.0.readers;
        (pool.size() as usize, pool.num_idle())
    }

    async fn send(&self, op: Op) -> Result<Done, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.0
            .jobs
            .send(Job { op, reply })
            .await
            .map_err(|_| writer::gone())?;
        answer.await.map_err(|_| writer::gone())?
    }

    async fn write(&self, op: Op) -> Result<Written, StoreError> {
        match self.send(op).await? {
            Done::Written(written) => Ok(written),
            _ => Err(writer::gone()),
        }
    }

    /// Answers a reservation that changes nothing (a replay, a running
    /// attempt) from a reading connection, without the write lock.
    async fn look(&self, request: &Reserve) -> Result<Option<Reserved>, StoreError> {
        let failed = |error: sqlx::Error| store_error(&error);
        let mut conn = self.0.readers.acquire().await.map_err(failed)?;
        let row = sqlx::query(statements::FIND)
            .bind(request.id.as_bytes().as_slice())
            .fetch_optional(&mut *conn)
            .await
            .map_err(failed)?;
        let Some(row) = row else {
            return Ok(None);
        };
        let record = rows::record(&row)?;
        // Not the stored time: a clock that stepped back makes this reader say
        // "recorded" or "running" a little longer, which runs nothing. Whatever
        // needs a write is decided again by the writer.
        let now_us = self.0.time.at_least(i64::MIN);
        let decision = transition::reserve(Some(&record), request, now_us);
        Ok(decision.write.is_none().then_some(decision.reply))
    }
}

fn start_writer(writer: Writer) -> Result<mpsc::Sender<Job>, StoreError> {
    let (sender, jobs) = mpsc::channel(QUEUE);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|_| no_thread())?;
    std::thread::Builder::new()
        .name("idem-sqlite".to_owned())
        .spawn(move || runtime.block_on(writer.serve(jobs)))
        .map_err(|_| no_thread())?;
    Ok(sender)
}

fn no_thread() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "the thread that writes to the SQLite file could not start",
    )
}

fn misconfigured(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, what)
}

fn refuse_shared_memory(path: &Path) -> Result<(), StoreError> {
    let text = path.to_string_lossy();
    if text.is_empty() || text.contains(":memory:") || text.starts_with("file:") {
        return Err(misconfigured(
            "an in-memory SQLite database has only one connection; use `MemoryStore`, or a file",
        ));
    }
    Ok(())
}

/// Creates the file before `SQLite` does, for its owner only; `SQLite` gives
/// the files beside it the same mode.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => Err(misconfigured(
            "the SQLite file cannot be created; does its folder exist?",
        )),
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        match self.send(Op::Pin(meta.clone())).await? {
            Done::Pinned(meta) => Ok(meta),
            _ => Err(writer::gone()),
        }
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let failed = |error: sqlx::Error| store_error(&error);
        let mut findings = Vec::new();
        let mut conn = self.0.readers.acquire().await.map_err(failed)?;
        let version: String = sqlx::query_scalar(statements::VERSION)
            .fetch_one(&mut *conn)
            .await
            .map_err(failed)?;
        let parts: Vec<u32> = version.split('.').map_while(|n| n.parse().ok()).collect();
        if parts < vec![3, 51, 3] {
            findings.push(Finding::OldSqlite);
        }
        let synchronous: i64 = sqlx::query_scalar(statements::SYNCHRONOUS)
            .fetch_one(&mut *conn)
            .await
            .map_err(failed)?;
        if synchronous < 2 {
            findings.push(Finding::NotDurable);
        }
        let stored: Option<i64> = sqlx::query_scalar(statements::CLOCK)
            .fetch_optional(&mut *conn)
            .await
            .map_err(failed)?;
        const DAY_US: i64 = 86_400_000_000;
        if stored.is_some_and(|stored| stored - self.0.time.host_us() > DAY_US) {
            findings.push(Finding::ClockBehind);
        }
        #[cfg(unix)]
        if let Ok(file) = std::fs::metadata(&self.0.path)
            && std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o077 != 0
        {
            findings.push(Finding::ReadableByOthers);
        }
        Ok(findings)
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        if let Some(reserved) = self.look(request).await? {
            return Ok(reserved);
        }
        match self.send(Op::Reserve(request.clone())).await? {
            Done::Reserved(reserved) => Ok(reserved),
            _ => Err(writer::gone()),
        }
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        self.write(Op::Complete(request.clone())).await
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        self.write(Op::Release(request.clone())).await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.write(Op::MarkUnknown(request.clone())).await
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        match self.send(Op::Sweep(*request)).await? {
            Done::Swept(rows) => Ok(rows),
            _ => Err(writer::gone()),
        }
    }

    async fn record_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        self.write(Op::RecordStep(request.clone())).await
    }

    async fn steps(&self, holder: &Holder) -> Result<Option<Vec<Step>>, StoreError> {
        self.steps_of(holder).await
    }

    async fn standings(&self, request: &Standings) -> Result<Vec<Option<Standing>>, StoreError> {
        standings::standings(self, request).await
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        Some(self)
    }

    fn transactional(&self) -> Option<&dyn Transactional> {
        Some(self)
    }

    fn lacks(&self) -> &'static [Capability] {
        &[]
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        let conn = schema::open(&self.0.connect).await?;
        Ok(Box::new(renewer::SqliteRenewer {
            conn,
            time: self.0.time.clone(),
        }))
    }
}
