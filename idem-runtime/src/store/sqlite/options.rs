//! How the file is opened, and what is no file.

use std::path::{Path, PathBuf};

use super::connection::Database;
use super::look::Pace;
use super::threads::Threads;
use super::time::StoreTime;
use super::{Shared, SqliteStore, misconfigured, writer};
use crate::clock::{Clock, SystemClock};
use crate::error::StoreError;
use crate::sync::Arc;

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
        if !self.existing {
            create_private(&self.path)?;
        }
        let database = Database {
            path: self.path,
            create: !self.existing,
        };
        let time = StoreTime::new(self.clock);
        let jobs = writer::start(database.clone(), time.clone()).await?;
        let readers = Threads::new(database.clone(), self.readers as usize);
        Ok(SqliteStore(Arc::new(Shared {
            database,
            jobs,
            readers,
            pace: Pace::default(),
            time,
        })))
    }

    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            readers: 4,
            existing: false,
            clock: Arc::new(SystemClock),
        }
    }
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
