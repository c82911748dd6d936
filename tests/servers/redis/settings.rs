//! What the start finds in a server's settings.

use idem::store::{Finding, RedisStore, Store as _};
use idem::{Engine, Error, StoreErrorKind};

use super::server::Server;
use super::{cluster, opened, prefix, raw, single};

#[tokio::test]
async fn a_good_server_has_nothing_to_tell_and_a_cluster_may_fail_over() {
    let store = opened(&single(), &prefix()).await;
    assert_eq!(store.check().await.unwrap(), []);
    assert_eq!(store.kind(), "redis");
    let store = opened(&cluster(), &prefix()).await;
    assert_eq!(store.check().await.unwrap(), [Finding::MayFailOver]);
    assert_eq!(store.kind(), "redis-cluster");
}

#[tokio::test]
async fn a_server_that_may_lose_what_it_acknowledged_is_found_and_does_not_start() {
    let server = Server::start(&[]);
    let store = RedisStore::connect(&server.url()).await.unwrap();
    assert_eq!(store.check().await.unwrap(), []);
    for (name, bad, good, finding) in [
        ("appendfsync", "everysec", "always", Finding::NotDurable),
        ("appendonly", "no", "yes", Finding::NotDurable),
        (
            "maxmemory-policy",
            "allkeys-lru",
            "noeviction",
            Finding::Evicting,
        ),
        (
            "maxmemory-policy",
            "volatile-ttl",
            "noeviction",
            Finding::Evicting,
        ),
    ] {
        server.set(name, bad).await;
        assert_eq!(store.check().await.unwrap(), [finding], "{name} {bad}");
        let Err(Error::Store(error)) = Engine::builder(store.clone()).build().await else {
            panic!("it started with {name} {bad}");
        };
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
        let accepted = Engine::builder(store.clone()).accept_loss(finding);
        accepted.build().await.unwrap();
        server.set(name, good).await;
    }
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn every_master_of_a_cluster_is_looked_at() {
    // A cluster of one that serves all slots, and one that is no cluster yet.
    let server = Server::start(&["--cluster-enabled", "yes", "--cluster-port", &free_port()]);
    raw::<()>(&server.url(), &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    loop {
        let info: String = raw(&server.url(), &["CLUSTER", "INFO"]).await;
        if info.contains("cluster_state:ok") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let url = format!("redis-cluster://127.0.0.1:{}", server.port());
    let store = opened(&url, &prefix()).await;
    assert_eq!(store.check().await.unwrap(), [Finding::MayFailOver]);
    server.set("appendfsync", "everysec").await;
    server.set("maxmemory-policy", "allkeys-lru").await;
    let findings = store.check().await.unwrap();
    for finding in [Finding::NotDurable, Finding::Evicting, Finding::MayFailOver] {
        assert!(findings.contains(&finding), "{findings:?}");
    }
    assert_eq!(findings.len(), 3, "{findings:?}");
}

fn free_port() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port().to_string()
}

#[tokio::test]
async fn a_replica_is_found_and_so_is_a_server_that_has_one() {
    let server = Server::start(&[]);
    let of = format!("127.0.0.1 {}", server.port());
    let replica = Server::start(&["--replicaof", &of]);
    let store = RedisStore::connect(&replica.url()).await.unwrap();
    let findings = store.check().await.unwrap();
    assert!(findings.contains(&Finding::Replica), "{findings:?}");

    loop {
        let info: String = raw(&server.url(), &["INFO", "replication"]).await;
        if info.contains("connected_slaves:1") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let store = RedisStore::connect(&server.url()).await.unwrap();
    assert_eq!(store.check().await.unwrap(), [Finding::MayFailOver]);
    // A warning.
    Engine::builder(store).build().await.unwrap();
}

#[tokio::test]
async fn settings_that_are_hidden_must_be_accepted_by_name() {
    let server = Server::start(&[]);
    for (user, hidden) in [("a", "-config"), ("b", "-info")] {
        let rules = [
            "ACL", "SETUSER", user, "on", ">pw", "~*", "&*", "+@all", hidden,
        ];
        raw::<()>(&server.url(), &rules).await;
        let url = format!("redis://{user}:pw@127.0.0.1:{}/", server.port());
        let store = RedisStore::connect(&url).await.unwrap();
        assert_eq!(store.check().await.unwrap(), [Finding::SettingsHidden]);
        let Err(Error::Store(error)) = Engine::builder(store.clone()).build().await else {
            panic!("it started with hidden settings");
        };
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
        let accepted = Engine::builder(store).accept_loss(Finding::SettingsHidden);
        accepted.build().await.unwrap();
    }
    // What can be seen is told all the same.
    server.set("appendonly", "no").await;
    let url = format!("redis://a:pw@127.0.0.1:{}/", server.port());
    let store = RedisStore::connect(&url).await.unwrap();
    let findings = store.check().await.unwrap();
    assert!(findings.contains(&Finding::NotDurable), "{findings:?}");
}

#[tokio::test]
async fn a_user_that_is_refused_is_a_mistake_in_the_configuration() {
    let server = Server::start(&["--requirepass", "right"]);
    for url in [
        server.url(),
        format!("redis://:wrong@127.0.0.1:{}/", server.port()),
    ] {
        let error = match RedisStore::connect(&url).await {
            Ok(store) => store.check().await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
    }
}

#[tokio::test]
async fn a_node_of_a_cluster_is_not_taken_for_a_server() {
    let url = cluster();
    let hosts = url.strip_prefix("redis-cluster://").unwrap();
    let node = format!("redis://{}", hosts.split(',').next().unwrap());
    let store = opened(&node, &prefix()).await;
    let error = store.check().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("redis-cluster://"), "{error}");
}
