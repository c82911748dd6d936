//! Records in `MariaDB` or `MySQL`.
//!
//! Each step is one autocommit statement. What stands at a key is decided by
//! [`transition`], and a change is written only if the
//! record is still the one that was seen (state, fence, claim and lease), else
//! it is looked at again. Nothing is decided from the count of an upsert.
//! Completions of different keys that arrive together go in one statement, and
//! on `MariaDB` reservations too; if the server refuses that one, or another
//! session has locked a row of it, each goes by itself.
//!
//! | | `MariaDB` 10.5 and later | `MySQL` 8 |
//! |---|---|---|
//! | atomic primitive | `INSERT … ON DUPLICATE KEY UPDATE … RETURNING`, guarded `UPDATE` | `INSERT`, guarded `UPDATE` |
//! | trips: first, replay, takeover | 1, 1, 2 | 1, 2, 3 |
//! | trips: over what was released or has expired | 3 | 4 |
//! | clock | the server's `UTC_TIMESTAMP(6)`; microseconds | the same |
//! | durability | `innodb_flush_log_at_trx_commit = 1`, and `sync_binlog = 1` where there is a binary log; no promise on Galera | the same |
//! | isolation needed | read committed or above: statements are single; conflicts are tried again | the same |
//! | sessions | strict and with autocommit: set on the store's own connections, looked for in a pool of the user's | the same |
//! | largest answer | the engine's limit, and a little less than `max_allowed_packet` | the same |
//! | versions tested | 10.11 | none; its statements were tested on `MariaDB` |

mod admin;
mod checks;
mod error;
mod packed;
mod renewer;
mod rows;
mod schema;
mod standings;
mod statements;
mod steps;
mod texts;
mod together;
mod within;

use async_trait::async_trait;
use sqlx::mysql::{MySql, MySqlPool, MySqlPoolOptions};
use sqlx::{Executor as _, Row as _};

use self::error::{is_conflict, only_reads, store_error};
use self::statements::Statements;
use self::texts::Texts;
use self::together::{Completing, Link, Reserving};
pub(crate) use self::within::in_session;
use super::{
    Capability, Complete, Finding, Holder, MarkUnknown, Meta, RecordStep, Release, Renewer,
    Reserve, Reserved, Standings, Step, Store, StoreAdmin, Sweep, Transactional, Written,
};
use crate::clock::Clock;
use crate::error::{StoreError, StoreErrorKind};
use crate::fault;
use crate::identity::RecordId;
use crate::record::{Record, Standing};
use crate::store::connections::Connections;
use crate::store::gather::Gather;
use crate::store::swap::{self, Inserted, Looked, Rows, Tries};
use crate::sync::{Arc, AtomicI64, Ordering};
use crate::transition;

/// A store in `MariaDB` or `MySQL`; see the [module page](self).
///
/// Clones share the pool.
#[derive(Debug, Clone)]
pub struct MySqlStore {
    pool: MySqlPool,
    link: Link,
    reserving: Gather<Reserving>,
    completing: Gather<Completing>,
}

/// Which server's statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `MariaDB`, from 10.5 on.
    MariaDb,
    /// `MySQL` 8.
    MySql,
}

/// How to open a [`MySqlStore`].
#[derive(Debug, Clone)]
#[must_use = "call `connect` or `from_pool`"]
pub struct MySqlOptions {
    database: Option<String>,
    prefix: String,
    connections: u32,
    dialect: Option<Dialect>,
    clock: Option<Arc<dyn Clock>>,
}

impl MySqlOptions {
    /// Sets the database of the tables: 1 to 63 letters, digits and
    /// underscores, not starting with a digit. By default that of the URL.
    pub fn database(mut self, database: impl Into<String>) -> Self {
        self.database = Some(database.into());
        self
    }

    /// Sets what the tables' names begin with, of the same form, up to 40
    /// characters. By default `idem_`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the most connections for calls: 1 to 1,000, by default 10. None is
    /// used while a body runs or a caller waits. One more is for operators and
    /// the start, one more renews leases. A pool of the user's has its own limit.
    pub fn connections(mut self, connections: u32) -> Self {
        self.connections = connections.clamp(1, 1_000);
        self
    }

    /// Uses the statements of one kind of server, instead of asking which it
    /// is. Those of `MySQL` run on `MariaDB` too.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Sets the store's clock, for tests; the server's otherwise.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Opens a pool on a URL. The schema is not created: see
    /// [`MySqlStore::migrate`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the URL or a name is not valid, or the server does not answer.
    pub async fn connect(self, url: &str) -> Result<MySqlStore, StoreError> {
        let pool = own_sessions()
            .max_connections(self.connections + 1)
            // A ping before each statement would cost as much as the statement.
            .test_before_acquire(false)
            .connect(url)
            .await
            .map_err(|error| store_error(&error))?;
        let kept = Connections::keeping(pool.clone(), self.connections, only_reads);
        self.open(pool, kept).await
    }

    /// Uses a pool of the user's. The schema is not created: see
    /// [`MySqlStore::migrate`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If a name is not valid, or the server does not say which it is.
    pub async fn from_pool(self, pool: MySqlPool) -> Result<MySqlStore, StoreError> {
        let connections = Connections::of(pool.clone(), only_reads);
        self.open(pool, connections).await
    }

    async fn open(
        self,
        pool: MySqlPool,
        connections: Connections<MySql>,
    ) -> Result<MySqlStore, StoreError> {
        for (name, limit) in [
            (self.database.as_deref(), 63),
            (Some(self.prefix.as_str()), 40),
        ] {
            if name.is_some_and(|name| !is_name(name, limit)) {
                return Err(StoreError::new(
                    StoreErrorKind::Misconfigured,
                    "a database's name or a prefix consists of letters, digits and underscores, does not start with a digit, and is not too long",
                ));
            }
        }
        let dialect = match self.dialect {
            Some(dialect) => dialect,
            None => dialect_of(&pool).await?,
        };
        let texts = Texts {
            statements: Statements::new(self.database.as_deref(), &self.prefix),
            dialect,
            clock: self.clock,
            packet: AtomicI64::new(0),
        };
        Ok(MySqlStore::on(pool, connections, Arc::new(texts)))
    }
}

/// A pool whose sessions are as this store needs them.
fn own_sessions() -> MySqlPoolOptions {
    MySqlPoolOptions::new().after_connect(|session, _| {
        Box::pin(async move {
            session.execute(statements::SESSION).await?;
            Ok(())
        })
    })
}

async fn dialect_of(pool: &MySqlPool) -> Result<Dialect, StoreError> {
    let version: String = sqlx::query_scalar("select version()")
        .fetch_one(pool)
        .await
        .map_err(|error| store_error(&error))?;
    Ok(if version.contains("MariaDB") {
        Dialect::MariaDb
    } else {
        Dialect::MySql
    })
}

fn is_name(name: &str, limit: usize) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.len() <= limit
}

impl MySqlStore {
    /// Opens a pool on a URL, with the default options. The schema is not
    /// created: see [`migrate`](Self::migrate).
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the URL is not valid, or the server does not answer.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options().connect(url).await
    }

    /// Uses a pool of the user's, with the default options.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the server does not say which it is.
    pub async fn from_pool(pool: MySqlPool) -> Result<Self, StoreError> {
        Self::options().from_pool(pool).await
    }

    /// Returns the options to open a store with.
    pub fn options() -> MySqlOptions {
        MySqlOptions {
            database: None,
            prefix: "idem_".to_owned(),
            connections: 10,
            dialect: None,
            clock: None,
        }
    }

    fn on(pool: MySqlPool, connections: Connections<MySql>, texts: Arc<Texts>) -> Self {
        let link = Link { connections, texts };
        // `MySQL` does not tell of each row whether it was there.
        let reserving = match link.texts.dialect {
            Dialect::MariaDb => Gather::new(Reserving(link.clone())),
            Dialect::MySql => Gather::apart(Reserving(link.clone())),
        };
        Self {
            pool,
            reserving,
            completing: Gather::new(Completing(link.clone())),
            link,
        }
    }

    /// Creates the schema or brings it up to date.
    ///
    /// # Concurrent calls
    /// Harmless from many processes at once: an advisory lock makes them take
    /// turns.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the schema as it was or up to date.
    ///
    /// # Errors
    /// If the user may not create tables, or the schema is newer than this
    /// version.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        schema::migrate(&self.pool, &self.link.texts.statements).await
    }

    /// Returns the migrations as SQL, for people who run their own.
    #[must_use]
    pub fn schema_sql(&self) -> String {
        schema::sql(&self.link.texts.statements)
    }

    async fn pinned(&self) -> Result<Option<Meta>, StoreError> {
        let failed = |error: sqlx::Error| store_error(&error);
        let row = self
            .link
            .texts
            .query(&self.link.texts.statements.meta)
            .fetch_optional(&self.pool)
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let get = |at| row.try_get::<Vec<u8>, _>(at).map_err(failed);
        Ok(Some(Meta {
            format: row.try_get(0).map_err(failed)?,
            // The table checks the lengths.
            instance: get(1)?.try_into().unwrap_or_default(),
            secret_check: get(2)?.try_into().unwrap_or_default(),
        }))
    }
}

impl Rows for MySqlStore {
    async fn insert(&self, request: &Reserve) -> Result<Inserted, StoreError> {
        self.reserving.send(request).await
    }

    async fn find(&self, id: &RecordId) -> Result<Looked, StoreError> {
        let row = self.link.find(id).await;
        let found = rows::found(&row.map_err(|error| store_error(&error))?);
        Ok(found?.1)
    }

    async fn swap(&self, seen: &Record, next: &Record) -> Result<bool, StoreError> {
        let swapped = async {
            if transition::begins_life(seen, next) {
                self.link
                    .connections
                    .execute(self.link.texts.end_steps(seen))
                    .await?;
            }
            self.link
                .connections
                .execute(self.link.texts.swap(seen, next))
                .await
        };
        match swapped.await {
            Ok(done) => Ok(done.rows_affected() == 1),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(store_error(&error)),
        }
    }
}

#[async_trait]
impl Store for MySqlStore {
    fn kind(&self) -> &'static str {
        "mysql"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        let failed = |error: sqlx::Error| store_error(&error);
        // A read does not wait for transactions that have the row locked.
        if let Some(pinned) = self.pinned().await? {
            return Ok(pinned);
        }
        self.link
            .texts
            .query(&self.link.texts.statements.pin)
            .bind(meta.format.as_str())
            .bind(meta.instance.as_slice())
            .bind(meta.secret_check.as_slice())
            .execute(&self.pool)
            .await
            .map_err(failed)?;
        self.pinned().await?.ok_or_else(swap::in_the_way)
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        checks::check(self).await
    }

    fn largest_answer(&self) -> Option<usize> {
        checks::largest_answer(self.link.texts.packet.load(Ordering::SeqCst))
    }

    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        swap::reserve(self, request).await
    }

    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        let holder = &request.holder;
        if self.completing.send(request).await? {
            fault::point("complete-committed").await;
            return Ok(Written::Done);
        }
        // Not this holder's any more, or done before: the record tells.
        swap::step(self, &holder.id, |current, now_us| {
            transition::complete(current, request, now_us)
        })
        .await
    }

    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        swap::step(self, &request.holder.id, |current, now_us| {
            transition::release(current, request, now_us)
        })
        .await
    }

    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        swap::step(self, &request.holder.id, |current, now_us| {
            transition::mark_unknown(current, request, now_us)
        })
        .await
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        let mut tries = Tries::new();
        while tries.again().await {
            let swept = self
                .link
                .texts
                .query(&self.link.texts.statements.sweep)
                .bind(self.link.texts.clock_us())
                .bind(request.grace_us)
                .bind(i64::from(request.limit))
                .execute(&self.pool)
                .await;
            match swept {
                Ok(swept) => return Ok(swept.rows_affected()),
                // Whoever takes an expired key locks the same rows in another order.
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(store_error(&error)),
            }
        }
        Err(swap::in_the_way())
    }

    async fn record_step(&self, request: &RecordStep) -> Result<Written, StoreError> {
        self.keep_step(request).await
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
        &[Capability::SteadyClock]
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        let renewer = renewer::MySqlRenewer::open(self).await?;
        Ok(Box::new(renewer))
    }
}
