//! Where the records of one case are: a file, or tables or keys of its own on a
//! server.

use std::path::Path;

use idem::store::SqliteStore;
use idem::{Engine, EngineBuilder};

use crate::victim::{GRACE, LEASE};

/// A kind of store, and how a case gets a place of its own in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    #[cfg(feature = "servers")]
    Postgres,
    #[cfg(feature = "servers")]
    MariaDb,
    #[cfg(feature = "servers")]
    Redis,
    #[cfg(feature = "servers")]
    RedisCluster,
}

impl Kind {
    pub(crate) const ALL: &[Self] = &[
        Self::Sqlite,
        #[cfg(feature = "servers")]
        Self::Postgres,
        #[cfg(feature = "servers")]
        Self::MariaDb,
        #[cfg(feature = "servers")]
        Self::Redis,
        #[cfg(feature = "servers")]
        Self::RedisCluster,
    ];

    /// Part of a case's name; what is on a server can be chosen by that word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            #[cfg(feature = "servers")]
            Self::Postgres => "servers::postgres",
            #[cfg(feature = "servers")]
            Self::MariaDb => "servers::mariadb",
            #[cfg(feature = "servers")]
            Self::Redis => "servers::redis",
            #[cfg(feature = "servers")]
            Self::RedisCluster => "servers::cluster",
        }
    }

    /// Returns the place of a case, as an argument for another process.
    pub(crate) fn place(self, folder: &Path) -> String {
        match self {
            Self::Sqlite => folder.join("store.db").display().to_string(),
            #[cfg(feature = "servers")]
            Self::Postgres => server("IDEM_TEST_POSTGRES_URL"),
            #[cfg(feature = "servers")]
            Self::MariaDb => server("IDEM_TEST_MYSQL_URL"),
            #[cfg(feature = "servers")]
            Self::Redis => server("IDEM_TEST_REDIS_URL"),
            #[cfg(feature = "servers")]
            Self::RedisCluster => server("IDEM_TEST_REDIS_CLUSTER_URL"),
        }
    }
}

/// A URL, and behind `#` the prefix of tables or keys that no other case uses.
#[cfg(feature = "servers")]
fn server(variable: &str) -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    #[expect(
        clippy::disallowed_methods,
        reason = "a test is told where its server is"
    )]
    let url = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: eval \"$(scripts/stores up)\""));
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("{url}#c{}_{next}_", std::process::id())
}

/// Opens a place and builds an engine on it.
pub(crate) async fn engine(place: &str) -> Engine {
    builder(place)
        .await
        .namespace("crash")
        .lease(LEASE)
        .grace(GRACE)
        .build()
        .await
        .unwrap()
}

#[cfg(not(feature = "servers"))]
async fn builder(place: &str) -> EngineBuilder {
    Engine::builder(SqliteStore::open(place).await.unwrap())
}

#[cfg(feature = "servers")]
async fn builder(place: &str) -> EngineBuilder {
    use idem::store::{MySqlStore, PostgresStore, RedisStore};
    let Some((url, prefix)) = place.split_once('#') else {
        return Engine::builder(SqliteStore::open(place).await.unwrap());
    };
    if url.starts_with("redis") {
        let options = RedisStore::options().prefix(prefix);
        Engine::builder(options.connect(url).await.unwrap())
    } else if url.starts_with("postgres") {
        let options = PostgresStore::options().prefix(prefix).connections(4);
        let store = options.connect(url).await.unwrap();
        store.migrate().await.unwrap();
        Engine::builder(store)
    } else {
        let options = MySqlStore::options().prefix(prefix).connections(4);
        let store = options.connect(url).await.unwrap();
        store.migrate().await.unwrap();
        Engine::builder(store)
    }
}
