//! Connections of a pool, for single statements.
//!
//! The driver's pool asks the server by a ping whenever a connection comes
//! back, which costs as much as the statement and keeps the connection away
//! meanwhile. Those of a pool of the store's own are therefore kept here for
//! the next statement. In a pool of the user's nothing is kept: it is theirs.
//!
//! A connection whose statement did not end, because its future was dropped or
//! the way to the server broke, is closed here and now. The pool would ping it
//! first, and wait for as long as the server is silent. So is one whose server
//! only reads: another may have taken its place.

use std::time::Duration;

use sqlx::pool::{Pool, PoolConnection};
use sqlx::query::Query;
use sqlx::{Connection as _, Database, Error, Executor, IntoArguments};
use tokio::time::Instant;

use crate::sync::{Arc, Mutex, OwnedSemaphorePermit, Semaphore, lock};

/// How long a connection may go unused: what is between it and the server may
/// have forgotten it then.
const UNUSED: Duration = Duration::from_secs(60);
/// How long a connection is used at all, so that a server that comes up beside
/// others gets its share.
const USED: Duration = Duration::from_secs(30 * 60);
/// How long a server is given to hear that a connection is closed.
const FAREWELL: Duration = Duration::from_secs(5);

pub(super) struct Connections<DB: Database> {
    pool: Pool<DB>,
    /// Whether an error says that the server, or the session, only reads.
    only_reads: fn(&Error) -> bool,
    kept: Option<Kept<DB>>,
}

/// What is kept of a pool of the store's own.
struct Kept<DB: Database> {
    idle: Arc<Idle<DB>>,
    /// As many as the pool has connections, so that whoever has one finds a
    /// kept connection, or room for another in the pool.
    permits: Arc<Semaphore>,
    /// What a session is told before its first statement.
    session: Option<&'static str>,
}

/// The one that was used last is the last.
struct Idle<DB: Database>(Mutex<Vec<Unused<DB>>>);

impl<DB: Database> Idle<DB> {
    fn clear(&self) {
        let idle = std::mem::take(&mut *lock(&self.0));
        for unused in idle {
            drop(unused.connection.detach());
        }
    }

    /// Takes the one that was used last, and closes it and all others if it is
    /// too old.
    fn take(&self) -> Option<Unused<DB>> {
        let last = lock(&self.0).pop()?;
        if last.since.elapsed() < UNUSED && last.opened.elapsed() < USED {
            return Some(last);
        }
        let mut old = vec![last];
        old.append(&mut lock(&self.0));
        for unused in old {
            // Without the pool, whose place is free at once.
            let connection = unused.connection.detach();
            tokio::spawn(tokio::time::timeout(FAREWELL, connection.close()));
        }
        None
    }
}

/// A connection that is kept.
struct Unused<DB: Database> {
    connection: PoolConnection<DB>,
    opened: Instant,
    since: Instant,
}

impl<DB: Database> Drop for Idle<DB> {
    fn drop(&mut self) {
        // To give them back to the pool would need a runtime.
        self.clear();
    }
}

impl<DB: Database> Clone for Connections<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            only_reads: self.only_reads,
            kept: self.kept.as_ref().map(|kept| Kept {
                idle: Arc::clone(&kept.idle),
                permits: Arc::clone(&kept.permits),
                session: kept.session,
            }),
        }
    }
}

impl<DB: Database> std::fmt::Debug for Connections<DB> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connections")
            .field("keeps", &self.kept.is_some())
            .finish_non_exhaustive()
    }
}

impl<DB: Database> Connections<DB> {
    /// Those of a pool that others use too.
    pub(super) fn of(pool: Pool<DB>, only_reads: fn(&Error) -> bool) -> Self {
        Self {
            pool,
            only_reads,
            kept: None,
        }
    }

    /// Those of a pool of the store's own, up to `most` at once. The pool has
    /// room for more if it is used in other ways too.
    pub(super) fn keeping(pool: Pool<DB>, most: u32, only_reads: fn(&Error) -> bool) -> Self {
        Self {
            pool,
            only_reads,
            kept: Some(Kept {
                idle: Arc::new(Idle(Mutex::default())),
                permits: Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(1))),
                session: None,
            }),
        }
    }

    /// Tells each session this before its first statement. It stays with what is
    /// kept here: no other user of the pool meets it.
    #[cfg(feature = "postgres")]
    pub(super) fn telling(mut self, session: &'static str) -> Self {
        if let Some(kept) = &mut self.kept {
            kept.session = Some(session);
        }
        self
    }

    async fn take(&self) -> Result<Taken<DB>, Error>
    where
        for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    {
        let mut keep = None;
        if let Some(kept) = &self.kept {
            let permits = Arc::clone(&kept.permits).acquire_owned();
            let permit = permits.await.map_err(|_| Error::PoolClosed)?;
            keep = Some((Arc::clone(&kept.idle), permit));
            if let Some(unused) = kept.idle.take() {
                return Ok(Taken {
                    connection: Some(unused.connection),
                    opened: unused.opened,
                    keep,
                });
            }
        }
        let mut taken = Taken {
            connection: Some(self.pool.acquire().await?),
            opened: Instant::now(),
            keep,
        };
        let session = self.kept.as_ref().and_then(|kept| kept.session);
        if let (Some(session), Some(connection)) = (session, &mut taken.connection) {
            (&mut **connection).execute(session).await?;
        }
        Ok(taken)
    }
}

impl<DB: Database> Connections<DB>
where
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    DB::Arguments: IntoArguments<DB>,
{
    pub(super) async fn execute(
        &self,
        query: Query<'_, DB, DB::Arguments>,
    ) -> Result<DB::QueryResult, Error> {
        let mut taken = self.take().await?;
        let done = match &mut taken.connection {
            Some(connection) => query.execute(&mut **connection).await,
            None => Err(Error::PoolClosed),
        };
        taken.end(done, self.only_reads)
    }

    /// Reads an answer to its end: a row may come before the server finds that
    /// it cannot commit.
    pub(super) async fn fetch_all(
        &self,
        query: Query<'_, DB, DB::Arguments>,
    ) -> Result<Vec<DB::Row>, Error> {
        let mut taken = self.take().await?;
        let rows = match &mut taken.connection {
            Some(connection) => query.fetch_all(&mut **connection).await,
            None => Err(Error::PoolClosed),
        };
        taken.end(rows, self.only_reads)
    }

    pub(super) async fn fetch_optional(
        &self,
        query: Query<'_, DB, DB::Arguments>,
    ) -> Result<Option<DB::Row>, Error> {
        Ok(self.fetch_all(query).await?.pop())
    }

    pub(super) async fn fetch_one(
        &self,
        query: Query<'_, DB, DB::Arguments>,
    ) -> Result<DB::Row, Error> {
        self.fetch_optional(query).await?.ok_or(Error::RowNotFound)
    }
}

/// A connection in use. Dropped before its statement has ended, it is closed.
struct Taken<DB: Database> {
    connection: Option<PoolConnection<DB>>,
    opened: Instant,
    keep: Option<(Arc<Idle<DB>>, OwnedSemaphorePermit)>,
}

impl<DB: Database> Taken<DB> {
    /// Keeps the connection, or gives it back to its pool, if the server has
    /// answered and does not only read.
    fn end<T>(
        mut self,
        result: Result<T, Error>,
        only_reads: fn(&Error) -> bool,
    ) -> Result<T, Error> {
        let is_good = match &result {
            Ok(_) => true,
            Err(error) => matches!(error, Error::Database(_)) && !only_reads(error),
        };
        if is_good {
            match (&self.keep, self.connection.take()) {
                (Some((idle, _)), Some(connection)) => {
                    lock(&idle.0).push(Unused {
                        connection,
                        opened: self.opened,
                        since: Instant::now(),
                    });
                }
                (_, connection) => drop(connection),
            }
        } else if let Some((idle, _)) = &self.keep {
            // The others are to the same server.
            idle.clear();
        }
        result
    }
}

impl<DB: Database> Drop for Taken<DB> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}
