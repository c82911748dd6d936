//! What a body has finished, kept on servers: the suite's topic on each, and
//! who comes first where two sessions meet at one record.

use std::sync::Arc;

use idem::sqlx::mysql::MySqlPoolOptions;
use idem::sqlx::{AssertSqlSafe, Executor as _};
use idem::store::mysql::Dialect;
use idem::store::{Holder, MySqlStore, RecordStep, Reserved, Step, Store, Written};
use idem::testing::conformance;

use crate::place::{Server, on_each_server, prefix};
use crate::redis;
use crate::session::Session;

on_each_server! {
    who_takes_the_record_away_first_keeps_a_step_out,
    a_step_that_comes_first_is_waited_for,
}

async fn topic(harness: impl conformance::Harness) {
    println!("{}", conformance::run_only(harness, "steps").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_postgres() {
    topic(crate::postgres::harness().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_mariadb() {
    topic(crate::mysql::harness(Dialect::MariaDb).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_mysql() {
    topic(crate::mysql::harness(Dialect::MySql).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_redis() {
    for url in redis::both() {
        topic(redis::harness(url)).await;
    }
}

/// A store whose sessions lock no more than a statement asks for.
async fn at_read_committed(server: Server, url: &str, prefix: &str) -> Arc<dyn Store> {
    let migrated = server.store(url, prefix, 4).await;
    let dialect = match server {
        Server::MariaDb => Dialect::MariaDb,
        Server::MySql => Dialect::MySql,
        // It is what Postgres does.
        Server::Postgres | Server::Redis => return migrated,
    };
    let pool = MySqlPoolOptions::new().after_connect(|session, _| {
        Box::pin(async move {
            let level = "set session transaction isolation level read committed";
            session.execute(AssertSqlSafe(level)).await?;
            Ok(())
        })
    });
    let pool = pool.connect(url).await.unwrap();
    let options = MySqlStore::options().prefix(prefix).dialect(dialect);
    Arc::new(options.from_pool(pool).await.unwrap())
}

struct Scene {
    store: Arc<dyn Store>,
    session: Session,
    watch: Session,
    prefix: String,
    key: String,
    holder: Holder,
}

impl Scene {
    /// An attempt that holds its record.
    async fn new(server: Server) -> Self {
        let (url, prefix) = (server.url(), prefix());
        let store = at_read_committed(server, &url, &prefix).await;
        let request = crate::operators::rerun(1);
        let Reserved::Won(won) = store.reserve(&request).await.unwrap() else {
            panic!("the key is fresh");
        };
        let session = Session::open(&url).await;
        Self {
            store,
            key: session.bytes(request.id.as_bytes()),
            session,
            watch: Session::open(&url).await,
            prefix,
            holder: Holder {
                id: request.id,
                claim: request.claim,
                fence: won.fence,
            },
        }
    }

    fn keep(&self) -> tokio::task::JoinHandle<Written> {
        let (store, holder) = (Arc::clone(&self.store), self.holder);
        let step = Step::new(&holder.id, "one", Some(0), [7; 32], "json/1", b"1".to_vec());
        tokio::spawn(async move {
            let request = RecordStep { holder, step };
            store.record_step(&request).await.unwrap()
        })
    }

    async fn number_kept(&mut self) -> i64 {
        let sql = format!("select count(*) from {}steps", self.prefix);
        self.watch.number(&sql).await
    }
}

async fn who_takes_the_record_away_first_keeps_a_step_out(server: Server) {
    let mut scene = Scene::new(server).await;
    let claim = scene.session.bytes(&[99; 16]);
    let take = format!(
        "update {}records set claim = {claim} where id = {}",
        scene.prefix, scene.key
    );
    scene.session.run("begin").await;
    scene.session.run(&take).await;
    let keeping = scene.keep();
    let waiting = scene.watch.waiting(&format!("{}steps", scene.prefix));
    scene.watch.until(&waiting, 1).await;
    scene.session.run("commit").await;
    assert_eq!(keeping.await.unwrap(), Written::Superseded);
    assert_eq!(scene.number_kept().await, 0);
}

async fn a_step_that_comes_first_is_waited_for(server: Server) {
    let mut scene = Scene::new(server).await;
    // The step waits here, and holds the record or is the first to ask for it.
    let block = format!(
        "insert into {}steps values ({}, 'one', {}, 0, {1}, '', '', {1}, 0)",
        scene.prefix, scene.key, scene.holder.fence
    );
    scene.session.run("begin").await;
    scene.session.run(&block).await;
    let keeping = scene.keep();
    let waiting = scene.watch.waiting(&format!("{}steps", scene.prefix));
    scene.watch.until(&waiting, 1).await;
    // Somebody else takes the record away, and must see what is kept by then.
    let (url, prefix, key) = (server.url(), scene.prefix.clone(), scene.key.clone());
    let mut taker = Session::open(&url).await;
    let taking = tokio::spawn(async move {
        let claim = taker.bytes(&[99; 16]);
        let take = format!("update {prefix}records set claim = {claim} where id = {key}");
        taker.run(&take).await;
        taker
            .number(&format!("select count(*) from {prefix}steps"))
            .await
    });
    let waiting = scene.watch.waiting(&scene.prefix);
    scene.watch.until(&waiting, 2).await;
    scene.session.run("rollback").await;
    assert_eq!(keeping.await.unwrap(), Written::Done);
    assert_eq!(taking.await.unwrap(), 1, "it waited for the step");
}
