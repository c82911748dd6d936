//! What is *not* promised, shown: a store that forgets what it acknowledged runs
//! a body a second time. Engines on such settings start only because the loss
//! was accepted by name, or was warned of. What a standby keeps depends on how it
//! is fed: both are shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use idem::redis::{Client, FromRedisValue};
use idem::store::{Finding, RedisStore, Store as _};
use idem::{Engine, Error, StoreErrorKind};

use crate::place::{Server, prefix};
use crate::private::Private;
use crate::proxy::Proxy;
use crate::session::Session;

const TTL: Duration = Duration::from_secs(3_600);

async fn send<T: FromRedisValue>(url: &str, words: &[&str]) -> T {
    let client = Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut command = idem::redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(&mut connection).await.unwrap()
}

/// Builds an engine that accepts a loss, which it would not start with else.
async fn accepting(url: &str, finding: Finding) -> Engine {
    let store = RedisStore::connect(url).await.unwrap();
    let refused = Engine::builder(store.clone()).build().await;
    let Err(Error::Store(error)) = refused else {
        panic!("it starts on a store that loses what it acknowledged");
    };
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    let builder = Engine::builder(store).accept_loss(finding);
    builder.build().await.unwrap()
}

async fn call(engine: &Engine, runs: &Arc<AtomicUsize>) {
    let runs = Arc::clone(runs);
    let call = engine.call("losses.charge", &"o-1", TTL);
    let answer = call.run(async move {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Error>(())
    });
    assert_eq!(answer.await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_without_a_log_forgets_everything_when_it_is_killed() {
    let mut redis = Private::start(Server::Redis, &["appendonly=no"]).await;
    let engine = accepting(&redis.url(), Finding::NotDurable).await;
    let runs = Arc::default();
    call(&engine, &runs).await;
    call(&engine, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    redis.kill();
    redis.restart().await;
    call(&engine, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2, "the documented loss");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_that_evicts_forgets_an_answer_before_its_ttl() {
    let settings = ["appendonly=yes", "appendfsync=always"];
    let evicting = ["maxmemory=4mb", "maxmemory-policy=allkeys-random"];
    let redis = Private::start(Server::Redis, &[settings, evicting].concat()).await;
    let engine = accepting(&redis.url(), Finding::Evicting).await;
    let runs = Arc::default();
    call(&engine, &runs).await;
    // Somebody else fills the server until the record is gone.
    let value = "x".repeat(100_000);
    for number in 0.. {
        let keys: Vec<String> = send(&redis.url(), &["KEYS", "*:r:*"]).await;
        if keys.is_empty() {
            break;
        }
        let _: () = send(&redis.url(), &["SET", &format!("other {number}"), &value]).await;
    }
    call(&engine, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2, "the documented loss");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_replica_that_takes_over_may_not_know_of_a_reservation() {
    let durable = ["appendonly=yes", "appendfsync=always"];
    let mut primary = Private::start(Server::Redis, &durable).await;
    let replica = Private::start(Server::Redis, &durable).await;
    let (link, through) = Proxy::of_url(&primary.url()).await;
    let port = through.rsplit(':').next().unwrap().trim_end_matches('/');
    let _: () = send(&replica.url(), &["REPLICAOF", "127.0.0.1", port]).await;
    loop {
        let info: String = send(&replica.url(), &["INFO", "replication"]).await;
        if info.contains("master_link_status:up") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let store = RedisStore::connect(&primary.url()).await.unwrap();
    assert_eq!(store.check().await, Ok(vec![Finding::MayFailOver]));
    let engine = Engine::builder(store).build().await.unwrap();
    let runs = Arc::default();
    // The network parts, then the primary dies, and somebody promotes the other.
    link.silence();
    call(&engine, &runs).await;
    primary.kill();
    let _: () = send(&replica.url(), &["REPLICAOF", "NO", "ONE"]).await;
    let store = RedisStore::connect(&replica.url()).await.unwrap();
    let engine = Engine::builder(store).build().await.unwrap();
    call(&engine, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2, "the documented loss");
}

/// Kills a server that acknowledges commits before they are in its log.
async fn is_forgotten_when_killed(server: Server, settings: &[&str], flush: &str) {
    let mut private = Private::start(server, settings).await;
    let (url, prefix) = (private.url(), prefix());
    let refused = server.open(&url, &prefix, 2).await.build().await;
    let Err(Error::Store(error)) = refused else {
        panic!("it starts on a server that loses what it acknowledged");
    };
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    let builder = server.open(&url, &prefix, 2).await;
    let builder = builder.accept_loss(Finding::NotDurable);
    let engine = builder.build().await.unwrap();
    // The tables shall be there afterwards.
    Session::open(&url).await.run(flush).await;
    let runs = Arc::default();
    call(&engine, &runs).await;
    call(&engine, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    private.kill();
    private.restart().await;
    call(&engine, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2, "the documented loss");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_that_does_not_wait_for_its_log_forgets_when_it_is_killed() {
    let settings = ["synchronous_commit=off", "wal_writer_delay=10s"];
    is_forgotten_when_killed(Server::Postgres, &settings, "checkpoint").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_that_does_not_write_its_log_at_once_forgets_when_it_is_killed() {
    let settings = [
        "innodb-flush-log-at-trx-commit=0",
        "innodb-flush-log-at-timeout=2700",
    ];
    is_forgotten_when_killed(Server::MariaDb, &settings, "flush engine logs").await;
}

/// A Postgres and its standby, with an engine on the primary.
struct Pair {
    primary: Private,
    standby: Private,
    prefix: String,
    engine: Engine,
}

impl Pair {
    async fn start() -> Self {
        let primary = Private::start(Server::Postgres, &[]).await;
        let prefix = prefix();
        let builder = Server::Postgres.open(&primary.url(), &prefix, 2).await;
        Self {
            standby: Private::standby(&primary).await,
            engine: builder.build().await.unwrap(),
            prefix,
            primary,
        }
    }

    /// Kills the primary, and makes the standby one.
    async fn fail_over(&mut self) -> Engine {
        self.primary.kill();
        let url = self.standby.url();
        let mut session = Session::open(&url).await;
        session.run("select pg_promote()").await;
        let builder = Server::Postgres.open(&url, &self.prefix, 2).await;
        builder.build().await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_standby_that_is_behind_may_not_know_of_a_reservation() {
    let mut pair = Pair::start().await;
    let mut session = Session::open(&pair.standby.url()).await;
    // The network parts.
    for sql in [
        "alter system set primary_conninfo = ''",
        "select pg_reload_conf()",
    ] {
        session.run(sql).await;
    }
    let is_cut = "select (not exists (select from pg_stat_wal_receiver))::int::bigint";
    session.until(is_cut, 1).await;
    let runs = Arc::default();
    call(&pair.engine, &runs).await;
    let engine = pair.fail_over().await;
    call(&engine, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2, "the documented loss");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_postgres_standby_knows_of_every_reservation() {
    let mut pair = Pair::start().await;
    let mut session = Session::open(&pair.primary.url()).await;
    for sql in [
        "alter system set synchronous_standby_names = '*'",
        "select pg_reload_conf()",
    ] {
        session.run(sql).await;
    }
    let synchronous = "select count(*) from pg_stat_replication where sync_state = 'sync'";
    session.until(synchronous, 1).await;
    let runs = Arc::default();
    call(&pair.engine, &runs).await;
    let engine = pair.fail_over().await;
    call(&engine, &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1, "it is replayed");
}
