//! A server that has become read-only while another took its place: the old
//! connections still lead to it, and must not be used until they break.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use idem::StoreErrorKind;
use idem::identity::{Fingerprint, RecordId};
use idem::record::Claim;
use idem::sqlx::{MySqlPool, PgPool};
use idem::store::mysql::Dialect;
use idem::store::{MySqlStore, PostgresStore, RedisStore, Reserve, Reserved, Store, Takeover};
use tokio::net::{TcpListener, TcpStream};

use crate::place::{Server, on_each_server, prefix};
use crate::private::Private;
use crate::session::Session;

on_each_server! {
    a_session_that_only_reads_is_left,
}

fn request(claim: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([7; 32]),
        operation: "demoted".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: 30_000_000,
        grace_us: 5_000_000,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

/// Opens a store on one session, in a pool of its own or of the user's.
async fn opened(server: Server, url: &str, prefix: &str, own: bool) -> Arc<dyn Store> {
    let dialect = match server {
        Server::MySql => Dialect::MySql,
        _ => Dialect::MariaDb,
    };
    let postgres = PostgresStore::options().prefix(prefix).connections(1);
    let mysql = MySqlStore::options().prefix(prefix).connections(1);
    let mysql = mysql.dialect(dialect);
    match (server, own) {
        (Server::Postgres, true) => Arc::new(postgres.connect(url).await.unwrap()),
        (Server::Postgres, false) => {
            let pool = PgPool::connect(url).await.unwrap();
            Arc::new(postgres.from_pool(pool).unwrap())
        }
        (_, true) => Arc::new(mysql.connect(url).await.unwrap()),
        (_, false) => {
            let pool = MySqlPool::connect(url).await.unwrap();
            Arc::new(mysql.from_pool(pool).await.unwrap())
        }
    }
}

async fn a_session_that_only_reads_is_left(server: Server) {
    let private = Private::start(server, &[]).await;
    let (url, mut root) = (private.url(), Session::open(&private.url()).await);
    let (reads, writes) = match server {
        Server::Postgres => (
            "alter database postgres set default_transaction_read_only = on",
            "alter database postgres reset default_transaction_read_only",
        ),
        _ => ("set global tx_read_only = 1", "set global tx_read_only = 0"),
    };
    for own in [true, false] {
        let prefix = prefix();
        server.store(&url, &prefix, 1).await;
        // A session is as the server is when it begins.
        root.run(reads).await;
        let store = opened(server, &url, &prefix, own).await;
        root.run(writes).await;

        let error = store.reserve(&request(1)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
        let reply = store.reserve(&request(2)).await;
        assert!(matches!(reply, Ok(Reserved::Won(_))), "{own}: {reply:?}");
    }
}

/// An address that leads to one server, and later to another.
async fn leads_to(port: &Arc<AtomicU16>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let port = Arc::clone(port);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let to = ("127.0.0.1", port.load(Ordering::SeqCst));
            let mut server = TcpStream::connect(to).await.unwrap();
            tokio::spawn(async move {
                let done = tokio::io::copy_bidirectional(&mut client, &mut server);
                done.await.ok();
            });
        }
    });
    url
}

fn port(of: &Private) -> u16 {
    let url = of.url();
    let (_, port) = url.trim_end_matches('/').rsplit_once(':').unwrap();
    port.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_server_that_became_a_replica_is_left() {
    let old = Private::start(Server::Redis, &[]).await;
    let new = Private::start(Server::Redis, &[]).await;
    let leads = Arc::new(AtomicU16::new(port(&old)));
    let options = RedisStore::options().prefix("demoted");
    let store = options.connect(&leads_to(&leads).await).await.unwrap();
    let mut renewer = store.renewer().await.unwrap();

    let client = idem::redis::Client::open(old.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut demote = idem::redis::cmd("REPLICAOF");
    demote.arg("127.0.0.1").arg(port(&new));
    let _: () = demote.query_async(&mut connection).await.unwrap();
    leads.store(port(&new), Ordering::SeqCst);

    let error = store.reserve(&request(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
    let reply = store.reserve(&request(1)).await;
    let Ok(Reserved::Won(won)) = reply else {
        panic!("{reply:?}");
    };
    // The connection of the renewal thread, too, which is opened again after
    // an error.
    let lease = idem::store::Lease {
        holder: idem::store::Holder {
            id: request(1).id,
            claim: request(1).claim,
            fence: won.fence,
        },
        lease_us: 30_000_000,
    };
    let first = renewer.renew(&[lease]).await;
    let second = renewer.renew(&[lease]).await;
    assert_eq!(second, Ok(vec![true]), "{first:?}");
}
