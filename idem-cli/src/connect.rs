//! Opening a store without creating anything in it.

use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use idem::admin::{Admin, Found};
use idem::sqlx::mysql::MySqlConnection;
use idem::sqlx::postgres::PgConnection;
use idem::sqlx::{self, Connection as _};
use idem::store::Seen;
use idem::store::{Capability, Finding, MySqlStore, PostgresStore, RedisStore, SqliteStore, Store};
use idem::{Engine, Secret, StoreError};

use crate::args::Global;
use crate::failure::Failure;
use crate::operators::OperatorsStore;
use crate::{finding, output};

/// How long a server may take to answer for the first time.
const CONNECT: Duration = Duration::from_secs(15);

pub(crate) const NO_SCHEMA: &str =
    "the store has no schema of idem, or an old one: `idem migrate` brings it up to date";

/// A store, opened by its URL.
pub(crate) enum Opened {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
    MySql(MySqlStore),
    Redis(RedisStore),
}

impl Opened {
    fn shared(self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store),
            Self::Postgres(store) => Arc::new(store),
            Self::MySql(store) => Arc::new(store),
            Self::Redis(store) => Arc::new(store),
        }
    }
}

/// What most commands work with.
pub(crate) struct Operator {
    /// For names of records, and for the page. No call can be made on it.
    pub(crate) engine: Engine,
    pub(crate) admin: Admin,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) grace_us: i64,
}

/// Opens the store, and tells on standard error which of its settings void the
/// promise: looking at it and settling it does no harm.
pub(crate) async fn operator(global: &Global) -> Result<Operator, Failure> {
    let (store, findings) = checked(global).await?;
    for found in findings.iter().filter(|found| found.voids_at_most_once()) {
        output::say(&format!("warning: {}: {found}", finding::name(*found)));
    }
    let mut builder = Engine::builder(OperatorsStore(Arc::clone(&store)))
        .namespace(&*global.namespace)
        .grace(global.grace)
        // What programs replay has no limit, and theirs is not known here.
        .answer_limit(64 * 1024 * 1024);
    if let Some(secret) = secret(global)? {
        builder = builder.secret(secret);
    }
    let engine = Box::pin(builder.build()).await?;
    Ok(Operator {
        admin: engine.admin()?,
        engine,
        store,
        grace_us: i64::try_from(global.grace.as_micros()).unwrap_or(i64::MAX),
    })
}

impl Operator {
    /// Finds the one record whose id begins with these digits.
    pub(crate) async fn find(&self, digits: &str) -> Result<Seen, Failure> {
        match self.admin.find(digits).await? {
            Found::One(seen) => Ok(seen),
            Found::Many(ids) => {
                let ids: Vec<_> = ids.iter().map(|id| id.to_hex()).collect();
                Err(Failure::usage(format!(
                    "several records begin with these digits: {}; give more of them",
                    ids.join(", ")
                )))
            }
            _ if self.store.lacks().contains(&Capability::ListFinished) => Err(Failure::nothing(
                "no open record begins with these digits, and this store finds finished ones only by all 64 digits, or by --operation and --key",
            )),
            _ => Err(Failure::nothing(
                "no record begins with these digits: `idem list --state unknown,lapsed,in-progress,done,released` shows all",
            )),
        }
    }
}

/// Opens the store and looks at its settings. A missing schema is a failure.
pub(crate) async fn checked(global: &Global) -> Result<(Arc<dyn Store>, Vec<Finding>), Failure> {
    let store = open(global).await?.shared();
    let findings = in_time(store.check()).await?;
    if findings.contains(&Finding::NoSchema) {
        return Err(Failure::failed(NO_SCHEMA));
    }
    Ok((store, findings))
}

/// Reads the secret: the bytes of its file, without one newline at the end.
pub(crate) fn secret(global: &Global) -> Result<Option<Secret>, Failure> {
    let Some(path) = &global.secret_file else {
        return Ok(None);
    };
    let mut bytes = fs::read(path).map_err(|error| {
        Failure::usage(format!("the secret file cannot be read: {}", error.kind()))
    })?;
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    match Secret::new(bytes) {
        Ok(secret) => Ok(Some(secret)),
        Err(short) => Err(Failure::usage(format!("{short}, and this file has fewer"))),
    }
}

/// Opens what is there.
async fn open(global: &Global) -> Result<Opened, Failure> {
    let target = Target::of(global)?;
    Ok(match target {
        Target::Sqlite(path) => {
            if fs::metadata(path).is_err() {
                return Err(Failure::failed(
                    "there is no such SQLite file: correct the path, or let `idem migrate` create it",
                ));
            }
            Opened::Sqlite(in_time(SqliteStore::options(path).existing().open()).await?)
        }
        Target::Server(kind, url) => connect(kind, url, global).await?,
    })
}

/// Creates what is not there, and says whether there is anything to create.
pub(crate) async fn migrate(global: &Global) -> Result<bool, Failure> {
    let opened = match Target::of(global)? {
        Target::Sqlite(path) => Opened::Sqlite(in_time(SqliteStore::open(path)).await?),
        Target::Server(kind, url) => connect(kind, url, global).await?,
    };
    match opened {
        Opened::Sqlite(_) => {}
        Opened::Postgres(store) => store.migrate().await?,
        Opened::MySql(store) => store.migrate().await?,
        Opened::Redis(_) => return Ok(false),
    }
    Ok(true)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Postgres,
    MySql,
    Redis,
}

/// What a URL names.
enum Target<'a> {
    /// By the path of its file.
    Sqlite(&'a str),
    Server(Kind, &'a str),
}

impl<'a> Target<'a> {
    /// Reads the URL, which is never a part of an error: it may have a password.
    fn of(global: &'a Global) -> Result<Self, Failure> {
        let url = global.store.as_deref().ok_or_else(|| {
            Failure::usage(
                "no store is given: pass `--store URL`, or set IDEM_STORE, for example to `sqlite://shop.db`",
            )
        })?;
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        let target = match scheme {
            "sqlite" => Self::Sqlite(rest.strip_prefix("//").unwrap_or(rest)),
            "postgres" | "postgresql" => Self::Server(Kind::Postgres, url),
            "mysql" | "mariadb" => Self::Server(Kind::MySql, url),
            "redis" | "redis-cluster" => Self::Server(Kind::Redis, url),
            "rediss" | "rediss-cluster" => return Err(no_tls()),
            _ => {
                return Err(Failure::usage(
                    "the store's URL has no scheme that is known: write `sqlite://PATH`, `postgres://…`, `mysql://…`, `redis://…` or `redis-cluster://…`",
                ));
            }
        };
        target.fits(global)?;
        Ok(target)
    }

    fn fits(&self, global: &Global) -> Result<(), Failure> {
        match self {
            Self::Sqlite(path) if path.is_empty() || path.contains(['?', '#']) => Err(
                Failure::usage("a SQLite URL is `sqlite://PATH`, without options"),
            ),
            Self::Sqlite(_) if global.schema.is_some() || global.prefix.is_some() => {
                Err(Failure::usage(
                    "a SQLite file has one set of tables: leave out --schema and --prefix",
                ))
            }
            Self::Server(Kind::Redis, _) if global.schema.is_some() => Err(Failure::usage(
                "Redis has no schemas: leave out --schema, and pass --prefix if the programs set one",
            )),
            Self::Server(_, url) if wants_tls(url) => Err(no_tls()),
            _ => Ok(()),
        }
    }
}

/// Whether a URL insists on TLS, as Postgres and `MySQL` write it.
fn wants_tls(url: &str) -> bool {
    let options = url.split_once('?').map_or("", |(_, options)| options);
    options.split('&').any(|option| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = value.to_ascii_lowercase();
        matches!(name, "sslmode" | "ssl-mode")
            && (value.starts_with("require") || value.starts_with("verify"))
    })
}

fn no_tls() -> Failure {
    Failure::usage(
        "this build of `idem` has no TLS, which the URL asks for: run it on the server's host or through a tunnel, without TLS in the URL",
    )
}

async fn connect(kind: Kind, url: &str, global: &Global) -> Result<Opened, Failure> {
    match kind {
        Kind::Postgres => {
            listening(PgConnection::connect(url).await)?;
            let mut options = PostgresStore::options().connections(2);
            if let Some(schema) = &global.schema {
                options = options.schema(schema);
            }
            if let Some(prefix) = &global.prefix {
                options = options.prefix(prefix);
            }
            Ok(Opened::Postgres(in_time(options.connect(url)).await?))
        }
        Kind::MySql => {
            let mut options = MySqlStore::options().connections(2);
            if let Some(schema) = &global.schema {
                options = options.database(schema);
            }
            if let Some(prefix) = &global.prefix {
                options = options.prefix(prefix);
            }
            // The driver knows one scheme for both.
            let url = url.replacen("mariadb:", "mysql:", 1);
            listening(MySqlConnection::connect(&url).await)?;
            Ok(Opened::MySql(in_time(options.connect(&url)).await?))
        }
        Kind::Redis => {
            let mut options = RedisStore::options();
            if let Some(prefix) = &global.prefix {
                options = options.prefix(prefix);
            }
            Ok(Opened::Redis(in_time(options.connect(url)).await?))
        }
    }
}

/// A pool goes on trying where nothing listens; somebody who has mistyped an
/// address is told at once. Every other error is the store's own to explain.
fn listening<C>(tried: Result<C, sqlx::Error>) -> Result<(), Failure> {
    match tried {
        Err(sqlx::Error::Io(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(Failure::failed(
                "nothing listens at the address of the store: is it right, and is the server up?",
            ))
        }
        _ => Ok(()),
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, Failure> {
    match tokio::time::timeout(CONNECT, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Failure::failed(
            "the store did not answer within 15 s: is its address right, and is it up?",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_insist_on_tls_are_seen() {
        for (url, expected) in [
            ("postgres://h/d", false),
            ("postgres://h/d?sslmode=prefer", false),
            ("postgres://h/d?a=b&sslmode=verify-full", true),
            ("mysql://h/d?ssl-mode=REQUIRED", true),
            ("postgres://h/sslmode=require", false),
        ] {
            assert_eq!(wants_tls(url), expected, "{url}");
        }
    }
}
