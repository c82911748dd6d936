//! Where the records of one case are: a file, or tables or keys of its own on a
//! server.

use std::path::Path;
use std::time::Duration;

use idem::Engine;
#[cfg(not(feature = "servers"))]
use idem::store::SqliteStore;

use crate::victim::{GRACE, LEASE};

/// A kind of store, and how a case gets a place of its own in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    #[cfg(feature = "servers")]
    Server(servers::Server),
}

impl Kind {
    pub(crate) const ALL: &[Self] = &[
        Self::Sqlite,
        #[cfg(feature = "servers")]
        Self::Server(servers::Server::Postgres),
        #[cfg(feature = "servers")]
        Self::Server(servers::Server::MariaDb),
        #[cfg(feature = "servers")]
        Self::Server(servers::Server::MySql),
        #[cfg(feature = "servers")]
        Self::Server(servers::Server::Redis),
        #[cfg(feature = "servers")]
        Self::Server(servers::Server::Cluster),
        #[cfg(feature = "servers")]
        Self::Server(servers::Server::Tiered),
    ];

    /// Part of a case's name; what is on a server can be chosen by that word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            #[cfg(feature = "servers")]
            Self::Server(server) => server.name(),
        }
    }

    /// Whether its records can live in a transaction of a caller's.
    pub(crate) fn is_sql(self) -> bool {
        match self {
            Self::Sqlite => true,
            #[cfg(feature = "servers")]
            Self::Server(server) => matches!(
                server,
                servers::Server::Postgres | servers::Server::MariaDb | servers::Server::MySql
            ),
        }
    }

    /// Returns the place of a case, as an argument for another process.
    pub(crate) fn place(self, folder: &Path) -> String {
        match self {
            Self::Sqlite => folder.join("store.db").display().to_string(),
            #[cfg(feature = "servers")]
            Self::Server(server) => server.place(),
        }
    }
}

/// Opens a place and builds an engine on it, whose attempts lapse soon.
pub(crate) async fn engine(place: &str) -> Engine {
    with_lease(place, LEASE, GRACE).await
}

/// The same for tests in which nobody dies: no attempt lapses, however busy the
/// machine is.
pub(crate) async fn patient_engine(place: &str) -> Engine {
    with_lease(place, Duration::from_secs(30), Duration::from_secs(5)).await
}

/// The same for who comes after the dead: it does not wait long for them, and does
/// not lapse itself, however busy the machine is.
pub(crate) async fn successor_engine(place: &str) -> Engine {
    with_lease(place, Duration::from_secs(30), GRACE).await
}

async fn with_lease(place: &str, lease: Duration, grace: Duration) -> Engine {
    #[cfg(feature = "servers")]
    let builder = servers::builder(place).await;
    #[cfg(not(feature = "servers"))]
    let builder = Engine::builder(SqliteStore::open(place).await.unwrap());
    let builder = builder.namespace("crash").lease(lease).grace(grace);
    builder.build().await.unwrap()
}

/// A place on a server is `KIND URL PREFIX`, with a second URL for a front.
#[cfg(feature = "servers")]
pub(crate) mod servers {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use idem::store::mysql::Dialect;
    use idem::store::{MySqlStore, PostgresStore, RedisStore, SqliteStore, TieredStore};
    use idem::{Engine, EngineBuilder};

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Server {
        Postgres,
        MariaDb,
        /// The statements of `MySQL` 8, on `MariaDB`.
        MySql,
        Redis,
        Cluster,
        /// Redis in front of Postgres.
        Tiered,
    }

    impl Server {
        pub(super) fn name(self) -> &'static str {
            match self {
                Self::Postgres => "servers::postgres",
                Self::MariaDb => "servers::mariadb",
                Self::MySql => "servers::mysql",
                Self::Redis => "servers::redis",
                Self::Cluster => "servers::cluster",
                Self::Tiered => "servers::tiered",
            }
        }

        pub(super) fn place(self) -> String {
            static NEXT: AtomicUsize = AtomicUsize::new(0);
            let next = NEXT.fetch_add(1, Ordering::SeqCst);
            let prefix = format!("c{}_{next}_", std::process::id());
            let name = self.name();
            let urls = match self {
                Self::Postgres => url("IDEM_TEST_POSTGRES_URL"),
                Self::MariaDb | Self::MySql => url("IDEM_TEST_MYSQL_URL"),
                Self::Redis => url("IDEM_TEST_REDIS_URL"),
                Self::Cluster => url("IDEM_TEST_REDIS_CLUSTER_URL"),
                Self::Tiered => {
                    let front = url("IDEM_TEST_REDIS_URL");
                    format!("{} {front}", url("IDEM_TEST_POSTGRES_URL"))
                }
            };
            format!("{name} {prefix} {urls}")
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a test is told where its server is"
    )]
    fn url(variable: &str) -> String {
        std::env::var(variable)
            .unwrap_or_else(|_| panic!("{variable} is not set: eval \"$(scripts/stores up)\""))
    }

    pub(super) async fn builder(place: &str) -> EngineBuilder {
        let words: Vec<&str> = place.split(' ').collect();
        match words[..] {
            ["servers::postgres", prefix, url] => Engine::builder(postgres(url, prefix).await),
            ["servers::mariadb", prefix, url] => {
                Engine::builder(mysql(url, prefix, Dialect::MariaDb).await)
            }
            ["servers::mysql", prefix, url] => {
                Engine::builder(mysql(url, prefix, Dialect::MySql).await)
            }
            ["servers::redis" | "servers::cluster", prefix, url] => {
                Engine::builder(redis(url, prefix).await)
            }
            ["servers::tiered", prefix, url, front] => {
                let back = postgres(url, prefix).await;
                Engine::builder(TieredStore::new(redis(front, prefix).await, back))
            }
            [file] => Engine::builder(SqliteStore::open(file).await.unwrap()),
            _ => panic!("{place} is not a place"),
        }
    }

    async fn postgres(url: &str, prefix: &str) -> PostgresStore {
        let options = PostgresStore::options().prefix(prefix).connections(4);
        let store = options.connect(url).await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    async fn mysql(url: &str, prefix: &str, dialect: Dialect) -> MySqlStore {
        let options = MySqlStore::options().prefix(prefix).connections(4);
        let store = options.dialect(dialect).connect(url).await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    async fn redis(url: &str, prefix: &str) -> RedisStore {
        let options = RedisStore::options().prefix(prefix);
        options.connect(url).await.unwrap()
    }
}
