//! Connections to the file, and the waits for its locks.
//!
//! Everything here blocks, so it runs on threads of the store's own.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::{is_busy, store_error};
use super::statements;
use crate::error::StoreError;

/// How long `SQLite` itself waits for a lock.
pub(super) const BUSY: Duration = Duration::from_secs(2);

/// How often a locked file is tried again. Each try already waits for the busy
/// timeout inside `SQLite`, except where it sees that waiting cannot help.
const TRIES: u32 = 8;

/// What it takes to open a connection.
#[derive(Debug, Clone)]
pub(super) struct Database {
    pub(super) path: PathBuf,
    /// Whether a file that is not there is created.
    pub(super) create: bool,
}

impl Database {
    /// Opens a connection and takes part in WAL mode, which needs the file to
    /// itself for a moment: other processes may be opening it too.
    pub(super) fn connect(&self) -> Result<Connection, StoreError> {
        patiently(|| {
            let conn = self.open()?;
            conn.execute_batch(statements::SETTINGS)?;
            Ok(conn)
        })
    }

    /// Opens a connection that changes nothing by being opened.
    pub(super) fn connect_plainly(&self) -> Result<Connection, StoreError> {
        patiently(|| self.open())
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, self.create);
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.busy_timeout(BUSY)?;
        // All that one connection uses.
        conn.set_prepared_statement_cache_capacity(32);
        Ok(conn)
    }
}

/// Takes the write lock, waiting while others hold it.
pub(super) fn begin(conn: &Connection) -> Result<(), StoreError> {
    patiently(|| execute(conn, statements::BEGIN))
}

/// Runs a statement that has no values.
pub(super) fn execute(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute(()).map(drop)
}

/// Tries again, after a pause, while the file is locked and there are tries left.
fn patiently<T>(attempt: impl Fn() -> rusqlite::Result<T>) -> Result<T, StoreError> {
    let mut number = 1;
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(error) if is_busy(&error) && number < TRIES => {
                std::thread::sleep(crate::backoff::jittered(number));
                number += 1;
            }
            Err(error) => return Err(store_error(&error)),
        }
    }
}
