//! A server's clock that is wrong for a moment: what one process saw of it must
//! not count for that process alone.

use std::sync::Arc;

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Recorded};
use idem::store::{
    Complete, Ending, Holder, MySqlStore, PostgresStore, RedisStore, Reserve, Reserved, Store,
    Takeover,
};
use idem::testing::ManualClock;

use crate::place::{Server, on_each_server, prefix};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

on_each_server! {
    and redis:
    who_asked_while_the_clock_was_wrong_judges_as_everybody_else,
}

async fn open(server: Server, prefix: &str, clock: &ManualClock) -> Arc<dyn Store> {
    let (url, clock) = (server.url(), clock.clone());
    match server {
        Server::Postgres => {
            let options = PostgresStore::options().prefix(prefix).clock(clock);
            let store = options.connect(&url).await.unwrap();
            store.migrate().await.unwrap();
            Arc::new(store)
        }
        Server::MariaDb | Server::MySql => {
            let options = MySqlStore::options().prefix(prefix).clock(clock);
            let store = options.connect(&url).await.unwrap();
            store.migrate().await.unwrap();
            Arc::new(store)
        }
        Server::Redis => {
            let options = RedisStore::options().prefix(prefix).clock(clock);
            Arc::new(options.connect(&url).await.unwrap())
        }
    }
}

fn request(key: u8, claim: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([key; 32]),
        operation: "clocks".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: 30 * SECOND,
        grace_us: 5 * SECOND,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

async fn who_asked_while_the_clock_was_wrong_judges_as_everybody_else(server: Server) {
    let (clock, prefix) = (ManualClock::new(), prefix());
    let misled = open(server, &prefix, &clock).await;
    let other = open(server, &prefix, &clock).await;
    clock.step(25 * HOUR);
    misled.reserve(&request(9, 1)).await.unwrap();
    clock.step(-25 * HOUR);

    let reserved = other.reserve(&request(1, 2)).await.unwrap();
    let Reserved::Won(won) = reserved else {
        panic!("expected to win, got {reserved:?}");
    };
    let seen = misled.reserve(&request(1, 3)).await.unwrap();
    let left_us = 35 * SECOND;
    assert_eq!(seen, Reserved::InProgress { left_us }, "it is alive");
    let holder = Holder {
        id: request(1, 2).id,
        claim: request(1, 2).claim,
        fence: won.fence,
    };
    let answer = Recorded::new(&holder.id, "json", false, b"1".to_vec());
    let complete = Complete {
        holder,
        ending: Ending::Answer(answer.clone()),
        ttl_us: Some(24 * HOUR),
    };
    other.complete(&complete).await.unwrap();
    let seen = misled.reserve(&request(1, 4)).await.unwrap();
    assert!(
        matches!(&seen, Reserved::Completed { answer: a, .. } if *a == answer),
        "its answer is kept for a day, got {seen:?}"
    );
}
