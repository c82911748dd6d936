//! Records in Postgres.
//!
//! Each step is one autocommit statement. A reservation inserts or reads in one
//! trip; what stands there is then decided by
//! [`transition`], and a change is written only if the
//! record is still the one that was seen (state, fence, claim and lease), else
//! it is looked at again. Reservations and completions of different keys that
//! arrive together go in one statement, each with a reply of its own; if the
//! server refuses that one, or a key in it is locked for 50 ms, each goes by
//! itself.
//!
//! | | |
//! |---|---|
//! | atomic primitive | `INSERT … ON CONFLICT DO NOTHING`, and guarded `UPDATE` |
//! | clock | the server's `clock_timestamp()`; microseconds |
//! | durability | that of `synchronous_commit`; a fail-over keeps a reservation only with a synchronous standby |
//! | isolation needed | read committed; above it, conflicts are tried again |
//! | largest answer | the engine's limit |
//! | versions tested | 15 |
//!
//! Behind a pooler in transaction mode, use
//! [`unnamed_statements`](PostgresOptions::unnamed_statements).

mod admin;
mod error;
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
use sqlx::Row as _;
use sqlx::postgres::{PgArguments, PgPool, PgPoolOptions, Postgres};
use sqlx::query::Query;

use self::error::{is_conflict, only_reads, store_error};
use self::statements::Statements;
use self::texts::Texts;
use self::together::{Completing, Link, Reserving};
pub(crate) use self::within::in_session;
use super::{
    Capability, Complete, Finding, Holder, MarkUnknown, Meta, RecordStep, Release, Renewer,
    Reserve, Reserved, Standings, Step, Store, StoreAdmin, Sweep, Transactional, Written,
};
use crate::clock::{Clock, SystemClock};
use crate::error::{StoreError, StoreErrorKind};
use crate::fault;
use crate::identity::RecordId;
use crate::record::{Record, Standing};
use crate::store::connections::Connections;
use crate::store::gather::Gather;
use crate::store::sql::{damaged, is_apart};
use crate::store::swap::{self, Inserted, Looked, Rows, Tries};
use crate::sync::Arc;
use crate::transition;

/// A store in Postgres; see the [module page](self).
///
/// Clones share the pool.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: PgPool,
    link: Link,
    reserving: Gather<Reserving>,
    completing: Gather<Completing>,
}

/// How to open a [`PostgresStore`].
#[derive(Debug, Clone)]
#[must_use = "call `connect` or `from_pool`"]
pub struct PostgresOptions {
    schema: Option<String>,
    prefix: String,
    connections: u32,
    named: bool,
    clock: Option<Arc<dyn Clock>>,
}

impl PostgresOptions {
    /// Sets the schema of the tables: 1 to 63 letters, digits and underscores,
    /// not starting with a digit. By default that of the search path.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
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

    /// Prepares no statements by name, for poolers in transaction mode.
    pub fn unnamed_statements(mut self) -> Self {
        self.named = false;
        self
    }

    /// Sets the store's clock, for tests; the server's otherwise.
    #[cfg(feature = "testing")]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Opens a pool on a URL. The schema is not created: see
    /// [`PostgresStore::migrate`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the URL or a name is not valid, or the server does not answer.
    pub async fn connect(self, url: &str) -> Result<PostgresStore, StoreError> {
        let pool = PgPoolOptions::new()
            .max_connections(self.connections + 1)
            // A ping before each statement would cost as much as the statement.
            .test_before_acquire(false)
            .connect(url)
            .await
            .map_err(|error| store_error(&error))?;
        let mut kept = Connections::keeping(pool.clone(), self.connections, only_reads);
        if self.named {
            // Behind a pooler, a session is not the store's own.
            kept = kept.telling(statements::SESSION);
        }
        self.open(pool, kept)
    }

    /// Uses a pool of the user's. The schema is not created: see
    /// [`PostgresStore::migrate`].
    ///
    /// Sessions are left as they are. With `plan_cache_mode =
    /// force_generic_plan`, which the store's own have, the server plans the
    /// statements of a call once and not each time, which saves it a quarter of
    /// its work. Set `enable_seqscan = off` with it, as they do: a plan that was
    /// made while the table was small must not read all of it later.
    ///
    /// # Errors
    /// If a name is not valid.
    pub fn from_pool(self, pool: PgPool) -> Result<PostgresStore, StoreError> {
        let connections = Connections::of(pool.clone(), only_reads);
        self.open(pool, connections)
    }

    fn open(
        self,
        pool: PgPool,
        connections: Connections<Postgres>,
    ) -> Result<PostgresStore, StoreError> {
        for (name, limit) in [
            (self.schema.as_deref(), 63),
            (Some(self.prefix.as_str()), 40),
        ] {
            if name.is_some_and(|name| !is_name(name, limit)) {
                return Err(StoreError::new(
                    StoreErrorKind::Misconfigured,
                    "a schema or prefix consists of letters, digits and underscores, does not start with a digit, and is not too long",
                ));
            }
        }
        let texts = Texts {
            statements: Statements::new(self.schema.as_deref(), &self.prefix),
            named: self.named,
            clock: self.clock,
        };
        Ok(PostgresStore::on(pool, connections, Arc::new(texts)))
    }
}

fn is_name(name: &str, limit: usize) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.len() <= limit
}

impl PostgresStore {
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
    /// # Errors
    /// None with the default options.
    pub fn from_pool(pool: PgPool) -> Result<Self, StoreError> {
        Self::options().from_pool(pool)
    }

    /// Returns the options to open a store with.
    pub fn options() -> PostgresOptions {
        PostgresOptions {
            schema: None,
            prefix: "idem_".to_owned(),
            connections: 10,
            named: true,
            clock: None,
        }
    }

    fn on(pool: PgPool, connections: Connections<Postgres>, texts: Arc<Texts>) -> Self {
        let link = Link { connections, texts };
        Self {
            pool,
            reserving: Gather::new(Reserving(link.clone())),
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
}

impl Rows for PostgresStore {
    async fn insert(&self, request: &Reserve) -> Result<Inserted, StoreError> {
        self.reserving.send(request).await
    }

    async fn find(&self, id: &RecordId) -> Result<Looked, StoreError> {
        let query = self
            .link
            .texts
            .query(&self.link.texts.statements.find)
            .bind(id.as_bytes().as_slice())
            .bind(self.link.texts.clock_us());
        let row = self.link.connections.fetch_one(query).await;
        let found = rows::found(&row.map_err(|error| store_error(&error))?);
        Ok(found?.1)
    }

    async fn swap(&self, seen: &Record, next: &Record) -> Result<bool, StoreError> {
        self.changed(self.link.texts.swap(seen, next)).await
    }
}

impl PostgresStore {
    /// Sends a guarded write, and says whether the guards held.
    async fn changed(&self, query: Query<'_, Postgres, PgArguments>) -> Result<bool, StoreError> {
        match self.link.connections.execute(query).await {
            Ok(done) => Ok(done.rows_affected() == 1),
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(store_error(&error)),
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        let failed = |error: sqlx::Error| store_error(&error);
        self.link
            .texts
            .query(&self.link.texts.statements.pin)
            .bind(meta.format.as_str())
            .bind(meta.instance.as_slice())
            .bind(meta.secret_check.as_slice())
            .execute(&self.pool)
            .await
            .map_err(failed)?;
        let row = self
            .link
            .texts
            .query(&self.link.texts.statements.meta)
            .fetch_one(&self.pool)
            .await
            .map_err(failed)?;
        let get = |at| row.try_get::<Vec<u8>, _>(at).map_err(failed);
        Ok(Meta {
            format: row.try_get(0).map_err(failed)?,
            // The table checks the lengths.
            instance: get(1)?.try_into().unwrap_or_default(),
            secret_check: get(2)?.try_into().unwrap_or_default(),
        })
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let asked_us = SystemClock.unix_us();
        let row = self
            .link
            .texts
            .query(&self.link.texts.statements.check)
            .bind(self.link.texts.statements.records.as_str())
            .bind(self.link.texts.clock_us())
            .bind(self.link.texts.statements.newest.as_str())
            .fetch_one(&self.pool)
            .await
            .map_err(|error| store_error(&error))?;
        let get = |at| row.try_get::<bool, _>(at).map_err(|_| damaged("settings"));
        let mut findings = Vec::new();
        if get(0)? {
            findings.push(Finding::Replica);
        }
        if !get(1)? {
            findings.push(Finding::NotDurable);
        }
        if !get(2)? {
            findings.push(Finding::NoSchema);
        }
        if get(3)? {
            findings.push(Finding::OtherUniqueIndex);
        }
        if is_apart(asked_us, row.try_get(4).map_err(|_| damaged("time"))?) {
            findings.push(Finding::ClockApart);
        }
        Ok(findings)
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
        let renewer = renewer::PostgresRenewer::open(self).await?;
        Ok(Box::new(renewer))
    }
}
