//! What happens between a look and a write, by hand: a gate on the way to the
//! server holds the write until the record has changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use idem::store::{Reserved, Store as _, Written};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::{LEASE, answer, both, opened, prefix, raw, record_key, rerun, single, won};

/// Holds back one script after some that it lets pass.
#[derive(Default)]
struct Gate {
    /// How many scripts pass before the one that is held; 0 is open.
    armed: AtomicUsize,
    held: Notify,
    release: Notify,
}

impl Gate {
    /// Returns the URL to use instead of the server's.
    async fn before(url: &str) -> (Arc<Self>, String) {
        let host = url.trim_start_matches("redis://").trim_end_matches('/');
        let (gate, host) = (Arc::new(Self::default()), host.to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let keeper = Arc::clone(&gate);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(&host).await.unwrap();
                tokio::spawn(Arc::clone(&keeper).carry(client, server));
            }
        });
        (gate, format!("redis://127.0.0.1:{port}/"))
    }

    async fn carry(self: Arc<Self>, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
        let mut bytes = vec![0; 65_536];
        loop {
            let Ok(len @ 1..) = from_client.read(&mut bytes).await else {
                return;
            };
            let is_script = bytes[..len].windows(7).any(|word| word == b"EVALSHA");
            if is_script && self.armed.load(Ordering::SeqCst) > 0 {
                let left = self.armed.fetch_sub(1, Ordering::SeqCst) - 1;
                if left == 0 {
                    self.held.notify_one();
                    self.release.notified().await;
                }
            }
            to_server.write_all(&bytes[..len]).await.unwrap();
        }
    }
}

/// Lets a caller see a record that it may take over, changes it before the
/// caller writes, and returns what the caller is told.
async fn changed_meanwhile(prepare: &[&str], change: &[&str]) -> Reserved {
    let (url, prefix) = (single(), prefix());
    let store = opened(&url, &prefix).await;
    let (gate, gated_url) = Gate::before(&url).await;
    let gated = opened(&gated_url, &prefix).await;
    // The server knows both scripts from here on: each trip is one.
    won(&store, &rerun(9, 1)).await;
    lapse(&url, &prefix, 9).await;
    won(&gated, &rerun(9, 2)).await;

    won(&store, &rerun(7, 1)).await;
    let key = record_key(&prefix, 7);
    let set = async |fields: &[&str]| {
        let (gone, set): (Vec<&str>, Vec<&str>) =
            fields.iter().partition(|field| field.starts_with('-'));
        for field in gone {
            raw::<()>(&url, &["HDEL", &key, &field[1..]]).await;
        }
        if !set.is_empty() {
            raw::<()>(&url, &[&["HSET", &key], set.as_slice()].concat()).await;
        }
    };
    set(prepare).await;
    gate.armed.store(2, Ordering::SeqCst);
    let taker = tokio::spawn(async move { gated.reserve(&rerun(7, 2)).await.unwrap() });
    gate.held.notified().await;
    set(change).await;
    gate.release.notify_one();
    taker.await.unwrap()
}

async fn lapse(url: &str, prefix: &str, key: u8) {
    raw::<()>(url, &["HSET", &record_key(prefix, key), "lease", "1"]).await;
}

#[tokio::test]
async fn what_did_not_change_is_taken_over() {
    let told = changed_meanwhile(&["lease", "1"], &[]).await;
    assert!(matches!(told, Reserved::Won(_)), "{told:?}");
}

#[tokio::test]
async fn a_lease_that_is_renewed_before_a_taker_writes_is_not_taken_over() {
    let told = changed_meanwhile(&["lease", "1"], &["lease", "9000000000000000"]).await;
    assert!(matches!(told, Reserved::InProgress { .. }), "{told:?}");
}

#[tokio::test]
async fn an_outcome_that_is_healed_before_a_taker_writes_is_replayed() {
    let told = changed_meanwhile(
        &["-lease", "state", "4", "reason", "2"],
        &[
            "-reason", "state", "2", "finished", "1", "codec", "json", "failed", "0", "answer", "1",
        ],
    )
    .await;
    assert!(matches!(told, Reserved::Completed { .. }), "{told:?}");
}

#[tokio::test]
async fn a_record_that_another_took_over_is_decided_on_again() {
    for field in ["fence", "claim"] {
        // The last takeover that is allowed, by another.
        let other = "9000000000000000";
        let change = [field, other, "takeovers", "5"];
        let told = changed_meanwhile(&["lease", "1"], &change).await;
        assert!(
            matches!(
                told,
                Reserved::Unknown {
                    exhausted: true,
                    ..
                }
            ),
            "{field}: {told:?}"
        );
    }
}

#[tokio::test]
async fn a_record_that_is_gone_before_a_taker_writes_is_fresh() {
    // Nothing is left of it, so nothing may be written over it.
    let all = [
        "-op",
        "-fp",
        "-elements",
        "-state",
        "-fence",
        "-attempt",
        "-claim",
        "-takeovers",
        "-doubt",
        "-lease",
        "-started",
    ];
    let told = changed_meanwhile(&["lease", "1"], &all).await;
    assert!(
        matches!(&told, Reserved::Won(won) if won.attempt == 1 && !won.doubt),
        "{told:?}"
    );
}

#[tokio::test]
async fn an_end_by_who_does_not_hold_the_record_writes_nothing() {
    for url in both() {
        let prefix = prefix();
        let store = opened(&url, &prefix).await;
        for (key, change) in [
            (1, ["claim", "0123456789abcdef"]),
            (2, ["fence", "9000000000000000"]),
            (3, ["state", "1"]),
        ] {
            let holder = won(&store, &rerun(key, 1)).await;
            let record = record_key(&prefix, key);
            raw::<()>(&url, &["HSET", &record, change[0], change[1]]).await;
            let read = async || raw::<HashMap<String, Vec<u8>>>(&url, &["HGETALL", &record]).await;
            let before = read().await;
            let written = store.complete(&answer(holder)).await.unwrap();
            assert_eq!(written, Written::Superseded, "{change:?}");
            assert_eq!(read().await, before, "{change:?}");
            let lease = idem::store::Lease {
                holder,
                lease_us: 2 * LEASE,
            };
            let renewed = store.renewer().await.unwrap().renew(&[lease]).await;
            assert_eq!(renewed.unwrap(), [false], "{change:?}");
            assert_eq!(read().await, before, "{change:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_went_silent_is_not_used_again() {
    let (url, prefix) = (single(), prefix());
    let (gate, gated_url) = Gate::before(&url).await;
    let gated = opened(&gated_url, &prefix).await;
    won(&gated, &rerun(1, 1)).await;
    gate.armed.store(1, Ordering::SeqCst);
    {
        let request = rerun(2, 1);
        let asked = gated.reserve(&request);
        // Nobody waits for the reply, as the engine does not after a while.
        tokio::select! {
            reply = asked => panic!("it was answered: {reply:?}"),
            () = gate.held.notified() => {}
        }
    }
    // What is sent over the old connection stays there.
    won(&gated, &rerun(3, 1)).await;
    let told = gated.reserve(&rerun(1, 2)).await.unwrap();
    assert!(matches!(told, Reserved::InProgress { .. }), "{told:?}");
}

#[tokio::test]
async fn the_highest_version_applied_is_compared_as_bytes_and_never_sinks() {
    let (url, prefix) = (single(), prefix());
    let store = opened(&url, &prefix).await;
    let cases: [(&[u8], &str, &[u8]); 5] = [
        (b"\x80", "a", b"\x80"),
        (b"a", "b", b"b"),
        (b"b", "ab", b"b"),
        (b"a\0", "a", b"a\0"),
        (b"a", "ab", b"ab"),
    ];
    for (key, (running, applied, after)) in (0..).zip(cases) {
        let request = idem::store::Reserve {
            version: idem::record::VersionBytes::new(running.to_vec()),
            ..rerun(key, 1)
        };
        let holder = won(&store, &request).await;
        let record = record_key(&prefix, key);
        raw::<()>(&url, &["HSET", &record, "v_applied", applied]).await;
        let written = store.complete(&answer(holder)).await.unwrap();
        assert_eq!(written, Written::Done);
        let found: Vec<u8> = raw(&url, &["HGET", &record, "v_applied"]).await;
        assert_eq!(found, after, "{running:?} over {applied}");
    }
}
