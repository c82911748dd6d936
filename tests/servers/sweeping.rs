//! A sweep against live traffic, on servers.

use std::time::Duration;

use crate::place::{Server, on_each_server, prefix};
use crate::traffic::is_swept_as_it_runs;

on_each_server! {
    and redis:
    a_sweep_against_live_traffic,
}

async fn a_sweep_against_live_traffic(server: Server) {
    let (url, prefix) = (server.url(), prefix());
    let mut engines = Vec::new();
    for _ in 0..2 {
        let builder = server.open(&url, &prefix, 4).await;
        let builder = builder.grace(Duration::from_millis(1));
        engines.push(builder.build().await.unwrap());
    }
    let swept = is_swept_as_it_runs(engines.try_into().unwrap()).await;
    // Redis deletes by itself.
    assert!(swept > 0 || server == Server::Redis);
}
