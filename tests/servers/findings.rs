//! What the start says about a server: each finding is provoked, and its text
//! read.

use idem::identity::Secret;
use idem::sqlx::Executor as _;
use idem::sqlx::mysql::MySqlPoolOptions;
use idem::store::{Finding, MySqlStore, PostgresStore, Store};
use idem::testing::ManualClock;
use idem::{Engine, EngineBuilder, Error, How, TombstoneReason};

use crate::place::{Server, prefix};
use crate::private::Private;
use crate::session::Session;

/// Why an engine does not start.
async fn refused(builder: EngineBuilder) -> String {
    match builder.build().await {
        Err(Error::Store(error)) => error.to_string(),
        other => panic!("it started: {other:?}"),
    }
}

/// Whether an engine refuses a finding in these words, and starts if it is
/// accepted.
async fn is_refused_until_accepted<S: Store + Clone>(store: &S, finding: Finding, words: &str) {
    assert_eq!(store.check().await.unwrap(), [finding]);
    let text = refused(Engine::builder(store.clone())).await;
    assert!(text.contains(words), "{text}");
    assert!(text.contains("accept_loss"), "{text}");
    let builder = Engine::builder(store.clone()).accept_loss(finding);
    builder.build().await.unwrap();
}

/// Whether a finding is told, and refused only if the engine is strict.
async fn is_told<S: Store + Clone>(store: &S, finding: Finding, words: &str) {
    assert_eq!(store.check().await.unwrap(), [finding]);
    Engine::builder(store.clone()).build().await.unwrap();
    let text = refused(Engine::builder(store.clone()).strict()).await;
    assert!(text.contains(words), "{text}");
}

async fn postgres(url: &str, prefix: &str) -> PostgresStore {
    let store = PostgresStore::options().prefix(prefix).connect(url).await;
    let store = store.unwrap();
    store.migrate().await.unwrap();
    store
}

async fn mysql(url: &str, prefix: &str) -> MySqlStore {
    let store = MySqlStore::options().prefix(prefix).connect(url).await;
    let store = store.unwrap();
    store.migrate().await.unwrap();
    store
}

/// A store on a pool of the user's, whose sessions begin with a statement.
async fn mysql_pool(url: &str, prefix: &str, begin: &'static str) -> MySqlStore {
    let pool = MySqlPoolOptions::new().after_connect(move |session, _| {
        Box::pin(async move { session.execute(begin).await.map(drop) })
    });
    let pool = pool.connect(url).await.unwrap();
    let options = MySqlStore::options().prefix(prefix);
    options.from_pool(pool).await.unwrap()
}

#[tokio::test]
async fn a_postgres_that_does_not_flush_or_is_a_standby_is_refused() {
    let mut primary = Private::start(Server::Postgres, &["fsync=off"]).await;
    let url = primary.url();
    for setting in ["fsync=off", "synchronous_commit=off"] {
        primary.kill();
        primary.set(&[setting]);
        primary.restart().await;
        let store = postgres(&url, "idem_").await;
        is_refused_until_accepted(&store, Finding::NotDurable, "flush commits to disk").await;
    }
    primary.kill();
    primary.set(&[]);
    primary.restart().await;
    assert_eq!(postgres(&url, "idem_").await.check().await.unwrap(), []);

    let standby = Private::standby(&primary).await;
    let store = PostgresStore::connect(&standby.url()).await.unwrap();
    assert_eq!(store.check().await.unwrap(), [Finding::Replica]);
    let text = refused(Engine::builder(store)).await;
    assert!(text.contains("read replica"), "{text}");
    assert!(text.contains("connect to the primary"), "{text}");
}

#[tokio::test]
async fn a_mariadb_that_does_not_flush_or_takes_no_writes_is_refused() {
    // What a server's defaults lack, the store's own sessions set.
    let settings = &["sql-mode=", "autocommit=0", "log-bin=binlog", "server-id=1"];
    let private = Private::start(Server::MariaDb, settings).await;
    let url = private.url();
    let mut root = Session::open(&url).await;
    let store = mysql(&url, "idem_").await;
    let not_durable = Finding::NotDurable;

    root.run("set global sync_binlog = 0").await;
    is_refused_until_accepted(&store, not_durable, "flush commits to disk").await;
    root.run("set global sync_binlog = 1").await;
    assert_eq!(store.check().await.unwrap(), []);
    root.run("set global innodb_flush_log_at_trx_commit = 2")
        .await;
    is_refused_until_accepted(&store, not_durable, "flush commits to disk").await;
    root.run("set global innodb_flush_log_at_trx_commit = 1")
        .await;

    root.run("set global read_only = 1").await;
    is_refused_until_accepted(&store, Finding::Replica, "connect to the primary").await;
    root.run("set global read_only = 0").await;

    root.run("set global max_allowed_packet = 1048576").await;
    let small = mysql(&url, "small_").await;
    assert_eq!(small.check().await.unwrap(), []);
    let strict = Engine::builder(small.clone()).strict();
    let text = refused(strict.secret(Secret::new([7; 32]).unwrap())).await;
    assert!(text.contains("`max_allowed_packet` is below"), "{text}");
    assert!(text.contains("raise it"), "{text}");
    // Within the engine's limit, and not within the server's.
    let engine = Engine::builder(small).build().await.unwrap();
    let ttl = std::time::Duration::from_secs(60);
    let large = "x".repeat(1024 * 1024 - 1_000);
    let call = engine.call("large", &1, ttl);
    let (answer, outcome) = call
        .run_detailed(async move { Ok::<_, Error>(large) })
        .await;
    assert!(answer.is_ok() && outcome.recorded, "{outcome:?}");
    let call = engine.call("large", &1, ttl);
    let (again, outcome) = call.run_detailed(async { Ok(String::new()) }).await;
    let reason = TombstoneReason::TooLarge;
    assert_eq!(again, Err(Error::NotReplayable { reason }));
    assert_eq!(outcome.how, How::Refused);
}

#[tokio::test]
async fn sessions_of_a_users_pool_that_do_not_do_are_found() {
    let (url, prefix) = (crate::url("IDEM_TEST_MYSQL_URL"), prefix());
    mysql(&url, &prefix).await;
    let store = mysql_pool(&url, &prefix, "set session sql_mode = ''").await;
    is_told(&store, Finding::NotStrict, "STRICT_ALL_TABLES").await;
    let store = mysql_pool(&url, &prefix, "set session autocommit = 0").await;
    assert_eq!(store.check().await.unwrap(), [Finding::NoAutocommit]);
    let text = refused(Engine::builder(store)).await;
    assert!(text.contains("no reservation is committed"), "{text}");
    let dirty = "set session transaction isolation level read uncommitted";
    let store = mysql_pool(&url, &prefix, dirty).await;
    is_refused_until_accepted(&store, Finding::DirtyReads, "READ COMMITTED or above").await;
}

#[tokio::test]
async fn tables_that_somebody_changed_are_found() {
    let (url, prefix) = (crate::url("IDEM_TEST_MYSQL_URL"), prefix());
    let store = mysql(&url, &prefix).await;
    let mut session = Session::open(&url).await;
    let unique = format!("create unique index {prefix}another on {prefix}records (operation)");
    session.run(&unique).await;
    is_refused_until_accepted(&store, Finding::OtherUniqueIndex, "drop it").await;
    session
        .run(&format!("drop index {prefix}another on {prefix}records"))
        .await;
    // Steps refer to their records, which no other engine keeps up.
    session
        .run(&format!(
            "alter table {prefix}steps drop foreign key {prefix}steps_ibfk_1"
        ))
        .await;
    for table in ["records", "meta"] {
        let engine = |name| format!("alter table {prefix}{table} engine = {name}");
        session.run(&engine("Aria")).await;
        let finding = Finding::NotTransactional;
        is_refused_until_accepted(&store, finding, "ENGINE = InnoDB").await;
        session.run(&engine("InnoDB")).await;
    }
    assert_eq!(store.check().await.unwrap(), []);

    let url = crate::url("IDEM_TEST_POSTGRES_URL");
    let store = postgres(&url, &prefix).await;
    let mut session = Session::open(&url).await;
    session.run(&unique).await;
    is_refused_until_accepted(&store, Finding::OtherUniqueIndex, "drop it").await;
}

#[tokio::test]
async fn a_clock_that_is_apart_is_told_and_never_an_error() {
    let prefix = prefix();
    let secret = || Secret::new([7; 32]).unwrap();
    let url = crate::url("IDEM_TEST_POSTGRES_URL");
    let options = PostgresStore::options().prefix(prefix.as_str());
    let store = options
        .clock(ManualClock::new())
        .connect(&url)
        .await
        .unwrap();
    store.migrate().await.unwrap();
    assert_eq!(store.check().await.unwrap(), [Finding::ClockApart]);
    let strict = Engine::builder(store).secret(secret()).strict();
    strict.build().await.unwrap();

    let url = crate::url("IDEM_TEST_MYSQL_URL");
    let options = MySqlStore::options().prefix(prefix.as_str());
    let store = options
        .clock(ManualClock::new())
        .connect(&url)
        .await
        .unwrap();
    store.migrate().await.unwrap();
    assert_eq!(store.check().await.unwrap(), [Finding::ClockApart]);
    let strict = Engine::builder(store).secret(secret()).strict();
    strict.build().await.unwrap();
    let text = Finding::ClockApart.to_string();
    assert!(text.contains("nothing depends on it"), "{text}");
}
