//! A cluster of which one master is gone.

use std::time::Duration;

use idem::store::StoreAdmin as _;

use super::server::Server;
use super::{id, opened, raw, record_key, rerun, won};

/// An engine's, for one call.
const PATIENCE: Duration = Duration::from_secs(5);

/// Three masters that serve what is theirs when another one is gone.
async fn cluster() -> (Vec<Server>, String) {
    let mut nodes = Vec::new();
    for (first, last) in [(0, 5_460), (5_461, 10_922), (10_923, 16_383)] {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let bus = free.local_addr().unwrap().port().to_string();
        drop(free);
        let node = Server::start(&[
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &bus,
            "--cluster-require-full-coverage",
            "no",
        ]);
        let (first, last) = (first.to_string(), i32::to_string(&last));
        raw::<()>(&node.url(), &["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await;
        if let Some(known) = nodes.first() {
            let known: &(Server, String) = known;
            let port = known.0.port().to_string();
            let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, &known.1];
            raw::<()>(&node.url(), &meet).await;
        }
        nodes.push((node, bus));
    }
    for (node, _) in &nodes {
        loop {
            let info: String = raw(&node.url(), &["CLUSTER", "INFO"]).await;
            if info.contains("cluster_slots_ok:16384") && info.contains("cluster_state:ok") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let hosts: Vec<_> = nodes
        .iter()
        .map(|(node, _)| format!("127.0.0.1:{}", node.port()))
        .collect();
    let url = format!("redis-cluster://{}", hosts.join(","));
    (nodes.into_iter().map(|(node, _)| node).collect(), url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_on_other_masters_are_served_after_many_asked_for_one_that_is_gone() {
    let (mut nodes, url) = cluster().await;
    let store = opened(&url, "partition").await;
    for key in 0..=u8::MAX {
        won(&store, &rerun(key, 1)).await;
    }
    drop(nodes.remove(0));
    let mut asked = tokio::task::JoinSet::new();
    for key in 0..=u8::MAX {
        let store = store.clone();
        asked.spawn(async move { tokio::time::timeout(PATIENCE, store.get(&id(key))).await });
    }
    asked.join_all().await;
    for key in 0..=u8::MAX {
        let record = record_key("partition", key);
        let slot: u16 = raw(&nodes[0].url(), &["CLUSTER", "KEYSLOT", &record]).await;
        if slot > 5_460 {
            let seen = tokio::time::timeout(PATIENCE, store.get(&id(key))).await;
            let seen = seen.expect("no answer").unwrap();
            assert!(seen.is_some(), "{key}");
        }
    }
}
