//! The servers, and a place on one that no other test uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idem::store::mysql::Dialect;
use idem::store::{MySqlStore, PostgresStore, RedisStore, Store};
use idem::{Engine, EngineBuilder};

/// A server with the statements that are sent to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Postgres,
    MariaDb,
    /// The statements of `MySQL` 8, on `MariaDB`.
    MySql,
    Redis,
}

impl Server {
    pub(crate) fn url(self) -> String {
        crate::url(match self {
            Self::Postgres => "IDEM_TEST_POSTGRES_URL",
            Self::MariaDb | Self::MySql => "IDEM_TEST_MYSQL_URL",
            Self::Redis => "IDEM_TEST_REDIS_URL",
        })
    }

    /// Opens a store with its schema, on so many connections.
    pub(crate) async fn open(self, url: &str, prefix: &str, connections: u32) -> EngineBuilder {
        match self {
            Self::Postgres => Engine::builder(postgres(url, prefix, connections).await),
            Self::MariaDb | Self::MySql => {
                Engine::builder(self.mysql(url, prefix, connections).await)
            }
            Self::Redis => Engine::builder(redis(url, prefix).await),
        }
    }

    /// As [`open`](Self::open), without an engine.
    pub(crate) async fn store(self, url: &str, prefix: &str, connections: u32) -> Arc<dyn Store> {
        match self {
            Self::Postgres => Arc::new(postgres(url, prefix, connections).await),
            Self::MariaDb | Self::MySql => Arc::new(self.mysql(url, prefix, connections).await),
            Self::Redis => Arc::new(redis(url, prefix).await),
        }
    }

    async fn mysql(self, url: &str, prefix: &str, connections: u32) -> MySqlStore {
        let dialect = match self {
            Self::MySql => Dialect::MySql,
            _ => Dialect::MariaDb,
        };
        let options = MySqlStore::options().prefix(prefix).dialect(dialect);
        let store = options.connections(connections).connect(url).await.unwrap();
        store.migrate().await.unwrap();
        store
    }
}

async fn postgres(url: &str, prefix: &str, connections: u32) -> PostgresStore {
    let options = PostgresStore::options().prefix(prefix);
    let store = options.connections(connections).connect(url).await.unwrap();
    store.migrate().await.unwrap();
    store
}

/// All callers share its one connection.
async fn redis(url: &str, prefix: &str) -> RedisStore {
    let options = RedisStore::options().prefix(prefix);
    options.connect(url).await.unwrap()
}

/// A prefix of tables that no other test uses.
pub(crate) fn prefix() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("f{}_{next}_", std::process::id())
}

/// Makes of each function, which takes a [`Server`], one test per server: of SQL,
/// or of all.
macro_rules! on_each_server {
    ($($name:ident),* $(,)?) => {
        on_each_server! { @ postgres Postgres $($name)* }
        on_each_server! { @ mariadb MariaDb $($name)* }
        on_each_server! { @ mysql MySql $($name)* }
    };
    (and redis: $($name:ident),* $(,)?) => {
        on_each_server! { $($name),* }
        on_each_server! { @ redis Redis $($name)* }
    };
    (@ $module:ident $server:ident $($name:ident)*) => {
        mod $module {
            use crate::place::Server;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(Server::$server).await;
                }
            )*
        }
    };
}
pub(crate) use on_each_server;

/// Waits until something is so; the runner ends a test that waits for ever.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}
