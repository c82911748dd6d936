//! The store in Redis, on one server and on a cluster.

mod admin;
mod contract;
mod guards;
mod memory;
mod partition;
mod server;
mod settings;

pub(crate) use contract::harness;

use std::sync::atomic::{AtomicUsize, Ordering};

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Recorded};
use idem::redis::cluster::ClusterClient;
use idem::redis::{Client, Cmd, FromRedisValue};
use idem::store::{Complete, Ending, Holder, RedisStore, Reserve, Reserved, Store, Takeover};

pub(crate) fn single() -> String {
    crate::url("IDEM_TEST_REDIS_URL")
}

fn cluster() -> String {
    crate::url("IDEM_TEST_REDIS_CLUSTER_URL")
}

pub(crate) fn both() -> [String; 2] {
    [single(), cluster()]
}

/// A place no other test uses.
pub(crate) fn prefix() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("t{}_{next}", std::process::id())
}

pub(crate) async fn opened(url: &str, prefix: &str) -> RedisStore {
    let options = RedisStore::options().prefix(prefix);
    options.connect(url).await.unwrap()
}

/// Sends a command past the store.
pub(crate) async fn raw<T: FromRedisValue>(url: &str, command: &[&str]) -> T {
    let mut cmd = Cmd::new();
    for word in command {
        cmd.arg(word);
    }
    let reply = match url.strip_prefix("redis-cluster://") {
        None => {
            let client = Client::open(url).unwrap();
            let mut connection = client.get_multiplexed_async_connection().await.unwrap();
            cmd.query_async(&mut connection).await
        }
        Some(hosts) => {
            let nodes = hosts.split(',').map(|host| format!("redis://{host}"));
            let client = ClusterClient::new(nodes).unwrap();
            let mut connection = client.get_async_connection().await.unwrap();
            cmd.query_async(&mut connection).await
        }
    };
    reply.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn id(key: u8) -> RecordId {
    RecordId::from_bytes([key; 32])
}

/// The name of a record, as the module page of the store has it.
fn record_key(prefix: &str, key: u8) -> String {
    format!("{{{prefix}:{key:02x}}}:r:{}", id(key).to_hex())
}

const LEASE: i64 = 30_000_000;
const GRACE: i64 = 5_000_000;
const TTL: i64 = 3_600_000_000;

fn rerun(key: u8, claim: u8) -> Reserve {
    Reserve {
        id: id(key),
        operation: "shop.charge".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: LEASE,
        grace_us: GRACE,
        takeover: Takeover::Rerun,
        max_takeovers: 5,
        version: None,
    }
}

async fn won(store: &dyn Store, request: &Reserve) -> Holder {
    let Reserved::Won(won) = store.reserve(request).await.unwrap() else {
        panic!("it was not won");
    };
    Holder {
        id: request.id,
        claim: request.claim,
        fence: won.fence,
    }
}

fn answer(holder: Holder) -> Complete {
    Complete {
        holder,
        ending: Ending::Answer(Recorded::new(&holder.id, "json", false, b"1".to_vec())),
        ttl_us: Some(TTL),
    }
}
