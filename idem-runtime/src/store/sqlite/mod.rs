//! Records in a `SQLite` file: the embedded default.
//!
//! Several processes of one host may share the file. One connection per process
//! writes and packs what waits into one transaction; a few connections read;
//! one more renews leases and does nothing else. They are used on threads of
//! the store's own, so that no driver blocks a runtime and a call costs one jump
//! there and back; only a look at one row is made where the caller is, as long as
//! such looks are quick.
//!
//! | | |
//! |---|---|
//! | atomic primitive | `BEGIN IMMEDIATE`, read, decide by [`transition`](crate::transition), write, `COMMIT` |
//! | clock | the host's, kept from stepping back behind stored times; microseconds |
//! | durability | WAL with `synchronous=FULL`: an acknowledged commit survives a power cut if the disk honours flushes ([`PRAGMA synchronous`](https://sqlite.org/pragma.html#pragma_synchronous)) |
//! | fail-over | none: one host, a local disk, never a network file system ([WAL](https://sqlite.org/wal.html)) |
//! | largest answer | the engine's limit |
//! | versions tested | 3.51.3, bundled |

mod admin;
mod connection;
mod error;
mod jobs;
mod look;
mod options;
mod renewer;
mod rows;
mod schema;
mod standings;
mod statements;
mod steps;
mod threads;
mod time;
#[cfg(feature = "tx")]
mod within;
mod writer;

use std::path::Path;

use async_trait::async_trait;
use rusqlite::Connection;

use self::connection::Database;
use self::error::store_error;
use self::jobs::{Done, Jobs, Op};
use self::look::Pace;
pub use self::options::SqliteOptions;
use self::renewer::SqliteRenewer;
use self::threads::Threads;
use self::time::StoreTime;
#[cfg(feature = "tx")]
pub(crate) use self::within::in_session;
use super::{
    Capability, Complete, Finding, Holder, MarkUnknown, Meta, RecordStep, Release, Renewer,
    Reserve, Reserved, Standings, Step, Store, StoreAdmin, Sweep, Written,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::identity::{Fingerprint, RecordId};
use crate::record::Standing;
use crate::sync::Arc;

/// A store in a `SQLite` file; see the [module page](self).
///
/// Clones share the connections, which close when the last clone and its
/// engine are gone.
#[derive(Debug, Clone)]
pub struct SqliteStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    database: Database,
    jobs: Jobs,
    readers: Threads,
    pace: Pace,
    time: StoreTime,
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
        SqliteOptions::new(path.as_ref())
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
        self.0.readers.count()
    }

    async fn write(&self, op: Op) -> Result<Written, StoreError> {
        match self.0.jobs.ask(op).await? {
            Done::Written(written) => Ok(written),
            _ => Err(gone()),
        }
    }
}

fn no_thread() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "a thread for the SQLite file could not start",
    )
}

fn gone() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "a thread of the SQLite file ended",
    )
    .ambiguous()
}

fn misconfigured(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, what)
}

/// What the promise depends on, as far as a connection can tell.
fn check(conn: &Connection, time: &StoreTime) -> rusqlite::Result<Vec<Finding>> {
    const DAY_US: i64 = 86_400_000_000;
    let mut findings = Vec::new();
    let version: String = conn.query_row(statements::VERSION, (), |row| row.get(0))?;
    let parts: Vec<u32> = version.split('.').map_while(|n| n.parse().ok()).collect();
    if parts < vec![3, 51, 3] {
        findings.push(Finding::OldSqlite);
    }
    let synchronous: i64 = conn.query_row(statements::SYNCHRONOUS, (), |row| row.get(0))?;
    if synchronous < 2 {
        findings.push(Finding::NotDurable);
    }
    if time::clock(conn)?.is_some_and(|stored| stored - time.host_us() > DAY_US) {
        findings.push(Finding::ClockBehind);
    }
    Ok(findings)
}

#[async_trait]
impl Store for SqliteStore {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        match self.0.jobs.ask(Op::Pin(meta.clone())).await? {
            Done::Pinned(meta) => Ok(meta),
            _ => Err(gone()),
        }
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let time = self.0.time.clone();
        let mut findings = self
            .0
            .readers
            .run(move |conn| check(conn, &time).map_err(|error| store_error(&error)))
            .await?;
        #[cfg(unix)]
        if let Ok(file) = std::fs::metadata(&self.0.database.path)
            && std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o077 != 0
        {
            findings.push(Finding::ReadableByOthers);
        }
        Ok(findings)
    }

    fn at_hand(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Reserved> {
        self.find_at_once(id, fingerprint)
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        self.look_and_reserve(request).await
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
        match self.0.jobs.ask(Op::Sweep(*request)).await? {
            Done::Swept(rows) => Ok(rows),
            _ => Err(gone()),
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

    #[cfg(feature = "tx")]
    fn transactional(&self) -> Option<&dyn super::Transactional> {
        Some(self)
    }

    fn lacks(&self) -> &'static [Capability] {
        &[]
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        let thread = Threads::new(self.0.database.clone(), 1);
        let renewer = SqliteRenewer::open(thread, self.0.time.clone()).await?;
        Ok(Box::new(renewer))
    }
}
