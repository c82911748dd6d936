//! One database of a test's own: the engine's tables, and a table of the user's.

use std::sync::atomic::{AtomicUsize, Ordering};

use idem::sqlx::{self, AssertSqlSafe, Sqlite, SqlitePool, Transaction};
use idem::store::tiered::MemoryFront;
use idem::store::{Count, SqliteStore, Store, TieredStore};
use idem::transaction::{Session, TxConnection as _};
use idem::{Engine, EngineBuilder};
use tempfile::TempDir;

use crate::operation::{self, Act, Failure, Order};
use crate::versions;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    #[cfg(feature = "servers")]
    Postgres,
    #[cfg(feature = "servers")]
    MariaDb,
    /// The statements of `MySQL` 8, on `MariaDB`.
    #[cfg(feature = "servers")]
    MySql,
}

impl Kind {
    pub(crate) const ALL: &[Self] = &[
        Self::Sqlite,
        #[cfg(feature = "servers")]
        Self::Postgres,
        #[cfg(feature = "servers")]
        Self::MariaDb,
        #[cfg(feature = "servers")]
        Self::MySql,
    ];

    pub(crate) fn is_sqlite(self) -> bool {
        self == Self::Sqlite
    }

    #[cfg(feature = "servers")]
    pub(crate) fn is_mysql(self) -> bool {
        matches!(self, Self::MariaDb | Self::MySql)
    }
}

pub(crate) enum Pool {
    Sqlite(SqlitePool),
    #[cfg(feature = "servers")]
    Postgres(sqlx::PgPool),
    #[cfg(feature = "servers")]
    MySql(sqlx::MySqlPool),
}

pub(crate) enum Tx {
    Sqlite(Transaction<'static, Sqlite>),
    #[cfg(feature = "servers")]
    Postgres(Transaction<'static, sqlx::Postgres>),
    #[cfg(feature = "servers")]
    MySql(Transaction<'static, sqlx::MySql>),
}

/// Does the same with a pool or transaction of each database.
macro_rules! on {
    ($kind:ident, $value:expr, |$inner:ident| $call:expr) => {
        match $value {
            $kind::Sqlite($inner) => $call,
            #[cfg(feature = "servers")]
            $kind::Postgres($inner) => $call,
            #[cfg(feature = "servers")]
            $kind::MySql($inner) => $call,
        }
    };
}

impl Tx {
    pub(crate) fn session(&mut self) -> Session<'_> {
        on!(Self, self, |tx| tx.session())
    }

    pub(crate) async fn place(&mut self, order: &Order) -> Result<u32, Failure> {
        on!(Self, self, |tx| operation::place(tx, order).await)
    }

    pub(crate) async fn patient(&mut self, order: &Order) -> Result<u32, Failure> {
        on!(Self, self, |tx| operation::patient(tx, order).await)
    }

    pub(crate) async fn tentative(&mut self, order: &Order) -> Result<u32, Failure> {
        on!(Self, self, |tx| operation::tentative(tx, order).await)
    }

    pub(crate) async fn recorded(&mut self, order: &Order) -> Result<u32, Failure> {
        on!(Self, self, |tx| operation::recorded(tx, order).await)
    }

    pub(crate) async fn apply(&mut self, order: &Order, version: u64) -> Result<u64, Failure> {
        on!(Self, self, |tx| versions::apply(tx, order, version).await)
    }

    pub(crate) async fn apply_or_record(
        &mut self,
        order: &Order,
        version: u64,
    ) -> Result<u64, Failure> {
        on!(Self, self, |tx| versions::apply_or_record(
            tx, order, version
        )
        .await)
    }

    pub(crate) async fn execute(&mut self, sql: &str) {
        operation::execute(&mut self.session(), sql).await;
    }

    pub(crate) async fn commit(self) {
        on!(Self, self, |tx| tx.commit().await).unwrap();
    }

    pub(crate) async fn rollback(self) {
        on!(Self, self, |tx| tx.rollback().await).unwrap();
    }
}

pub(crate) enum Stores {
    Sqlite(SqliteStore),
    #[cfg(feature = "servers")]
    Postgres(idem::store::PostgresStore),
    #[cfg(feature = "servers")]
    MySql(idem::store::MySqlStore),
}

impl Stores {
    fn builder(&self) -> EngineBuilder {
        on!(Self, self, |store| Engine::builder(store.clone()))
    }

    pub(crate) fn get(&self) -> &dyn Store {
        on!(Self, self, |store| store)
    }
}

pub(crate) struct World {
    pub(crate) pool: Pool,
    pub(crate) store: Stores,
    pub(crate) engine: Engine,
    pub(crate) table: String,
    _folder: TempDir,
}

impl World {
    pub(crate) async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (pool, store, prefix) = open(kind, &folder).await;
        let table = format!("{prefix}orders");
        let create = format!("create table {table} (id varchar(64))");
        on!(Pool, &pool, |pool| sqlx::query(AssertSqlSafe(create))
            .execute(pool)
            .await
            .map(|_| ()))
        .unwrap();
        let engine = store.builder().build().await.unwrap();
        Self {
            pool,
            store,
            engine,
            table,
            _folder: folder,
        }
    }

    /// Another engine on the same records.
    pub(crate) fn builder(&self) -> EngineBuilder {
        self.store.builder()
    }

    /// The same behind a front.
    pub(crate) fn tiered(&self) -> EngineBuilder {
        on!(Stores, &self.store, |store| Engine::builder(
            TieredStore::new(MemoryFront::new(), store.clone())
        ))
    }

    pub(crate) fn order(&self, key: &str, act: Act) -> Order {
        Order {
            engine: self.engine.clone(),
            table: self.table.clone(),
            key: key.to_owned(),
            amount: 42,
            act,
        }
    }

    /// The statement that writes a row of the user's.
    pub(crate) fn row(&self, key: &str) -> String {
        format!("insert into {} values ('{key}')", self.table)
    }

    /// Begins a transaction as the guide says.
    pub(crate) async fn begin(&self) -> Tx {
        match &self.pool {
            Pool::Sqlite(pool) => Tx::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await.unwrap()),
            #[cfg(feature = "servers")]
            Pool::Postgres(pool) => Tx::Postgres(pool.begin().await.unwrap()),
            #[cfg(feature = "servers")]
            Pool::MySql(pool) => Tx::MySql(pool.begin().await.unwrap()),
        }
    }

    /// Counts the user's rows of a key.
    pub(crate) async fn rows(&self, key: &str) -> i64 {
        let sql = format!("select count(*) from {} where id = '{key}'", self.table);
        on!(Pool, &self.pool, |pool| sqlx::query_scalar(AssertSqlSafe(
            sql
        ))
        .fetch_one(pool)
        .await)
        .unwrap()
    }

    /// How many records there are: open, and ended.
    pub(crate) async fn records(&self) -> (u64, u64) {
        let admin = self.store.get().admin().unwrap();
        let counts = admin
            .count(&Count {
                grace_us: 0,
                finished: true,
            })
            .await
            .unwrap();
        (
            counts.in_progress + counts.lapsed + counts.unknown,
            counts.finished.unwrap_or_default(),
        )
    }
}

async fn open(kind: Kind, folder: &TempDir) -> (Pool, Stores, String) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    let prefix = format!("t{}_{next}_", std::process::id());
    match kind {
        Kind::Sqlite => {
            let path = folder.path().join("shop.db");
            let store = SqliteStore::open(&path).await.unwrap();
            let url = format!("sqlite://{}", path.display());
            let pool = SqlitePool::connect(&url).await.unwrap();
            (Pool::Sqlite(pool), Stores::Sqlite(store), prefix)
        }
        #[cfg(feature = "servers")]
        Kind::Postgres => {
            let pool = sqlx::PgPool::connect(&url("IDEM_TEST_POSTGRES_URL"))
                .await
                .unwrap();
            let options = idem::store::PostgresStore::options().prefix(&prefix);
            let store = options.from_pool(pool.clone()).unwrap();
            store.migrate().await.unwrap();
            (Pool::Postgres(pool), Stores::Postgres(store), prefix)
        }
        #[cfg(feature = "servers")]
        Kind::MariaDb | Kind::MySql => {
            use idem::store::mysql::Dialect;
            let pool = sqlx::MySqlPool::connect(&url("IDEM_TEST_MYSQL_URL"))
                .await
                .unwrap();
            let dialect = if kind == Kind::MySql {
                Dialect::MySql
            } else {
                Dialect::MariaDb
            };
            let options = idem::store::MySqlStore::options().prefix(&prefix);
            let store = options
                .dialect(dialect)
                .from_pool(pool.clone())
                .await
                .unwrap();
            store.migrate().await.unwrap();
            (Pool::MySql(pool), Stores::MySql(store), prefix)
        }
    }
}

#[cfg(feature = "servers")]
#[expect(
    clippy::disallowed_methods,
    reason = "a test is told where its server is"
)]
fn url(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: eval \"$(scripts/stores up)\""))
}
