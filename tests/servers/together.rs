//! What goes together in one statement: each caller gets its own truth.
//!
//! Other sessions lock one key for each lane, so that all lanes wait; what is
//! asked for meanwhile goes together when they let go.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use idem::StoreError;
use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Recorded, VersionBytes};
use idem::store::{Complete, Ending, Holder, Reserve, Reserved, Store, Takeover, Won, Written};

use crate::place::{Server, on_each_server, prefix, until};
use crate::proxy::Proxy;
use crate::session::Session;

/// Of the library, for each kind of statement.
const LANES: u8 = 8;
const LEASE_US: i64 = 30_000_000;
const VERSION: &[u8] = &[1, 5];
const HIGHER: &[u8] = &[1, 9];

mod reservations {
    use super::*;

    on_each_server! {
        @ postgres Postgres
        each_of_many_is_told_what_stands_at_its_key
        a_key_that_another_session_has_locked_delays_no_other
        one_that_the_server_refuses_is_told_so_and_no_other
        whoever_leaves_before_it_is_sent_reserves_nothing
    }
    on_each_server! {
        @ mariadb MariaDb
        each_of_many_is_told_what_stands_at_its_key
        a_key_that_another_session_has_locked_delays_no_other
        one_that_the_server_refuses_is_told_so_and_no_other
        whoever_leaves_before_it_is_sent_reserves_nothing
    }
}

mod ends {
    use super::*;

    on_each_server! {
        @ postgres Postgres
        a_record_that_another_session_has_locked_delays_no_other_end
    }
    on_each_server! {
        @ mariadb MariaDb
        a_record_that_another_session_has_locked_delays_no_other_end
    }
}

on_each_server! {
    each_of_many_ends_is_told_whether_it_was_its_to_end,
    each_of_many_ends_records_its_version_as_one_alone_does,
}

fn id(key: u8) -> RecordId {
    RecordId::from_bytes([key; 32])
}

fn request(key: u8, claim: u8) -> Reserve {
    Reserve {
        id: id(key),
        operation: "together".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: LEASE_US,
        grace_us: 5_000_000,
        takeover: Takeover::Refuse,
        max_takeovers: 5,
        version: None,
    }
}

fn end(key: u8, claim: u8, fence: i64) -> Complete {
    let id = id(key);
    let bytes = key.to_string().into_bytes();
    Complete {
        holder: Holder {
            id,
            claim: Claim::from_bytes([claim; 16]),
            fence,
        },
        ending: Ending::Answer(Recorded::new(&id, "json", false, bytes)),
        ttl_us: Some(3_600_000_000),
    }
}

type Asked<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Goes on by itself: the first ones are sent by who asks for them.
fn by_itself<T: Send + 'static>(asked: Asked<T>) -> Asked<T> {
    let task = tokio::spawn(asked);
    Box::pin(async { task.await.unwrap() })
}

async fn all_win(asked: impl IntoIterator<Item = Asked<Reserved>>) {
    for asked in asked {
        assert!(matches!(asked.await, Ok(Reserved::Won(_))));
    }
}

/// A store behind a proxy, and another session with its server.
struct Scene {
    store: Arc<dyn Store>,
    proxy: Proxy,
    session: Session,
    table: String,
}

impl Scene {
    async fn new(server: Server) -> Self {
        let prefix = prefix();
        let (proxy, url) = Proxy::of_url(&server.url()).await;
        Self {
            store: server.store(&url, &prefix, 20).await,
            proxy,
            session: Session::open(&server.url()).await,
            table: format!("{prefix}records"),
        }
    }

    async fn won(&self, key: u8) -> Won {
        match self.store.reserve(&request(key, 1)).await.unwrap() {
            Reserved::Won(won) => won,
            other => panic!("{other:?}"),
        }
    }

    async fn complete(&self, key: u8) -> Complete {
        let request = end(key, 1, self.won(key).await.fence);
        let written = self.store.complete(&request).await.unwrap();
        assert_eq!(written, Written::Done);
        request
    }

    /// Asks, up to where it waits.
    async fn ask<T: 'static>(&self, ask: impl FnOnce(Arc<dyn Store>) -> Asked<T>) -> Asked<T> {
        let mut asked = ask(Arc::clone(&self.store));
        let polled = std::future::poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx).is_pending()));
        assert!(polled.await, "it waits");
        asked
    }

    async fn reserve(&self, request: Reserve) -> Asked<Reserved> {
        self.ask(|store| Box::pin(async move { store.reserve(&request).await }))
            .await
    }

    async fn end(&self, request: Complete) -> Asked<Written> {
        self.ask(|store| Box::pin(async move { store.complete(&request).await }))
            .await
    }

    /// Begins a transaction that has inserted these keys.
    async fn lock_fresh(&mut self, keys: impl IntoIterator<Item = u8>) {
        self.session.run("begin").await;
        for key in keys {
            let bytes = |byte, len| self.session.bytes(&vec![byte; len]);
            let (id, digest) = (bytes(key, 32), bytes(1, 32));
            let (none, claim) = (bytes(0, 0), bytes(9, 16));
            let not = match self.session {
                Session::Postgres(_) => "false",
                Session::MySql(_) => "0",
            };
            let sql = format!(
                "insert into {} (id, operation, payload_digest, payload_elements, state, fence, \
                 attempt, claim, takeovers, doubt, started_us) values \
                 ({id}, 'locked', {digest}, {none}, 0, 1, 1, {claim}, 0, {not}, 1)",
                self.table
            );
            self.session.run(&sql).await;
        }
    }

    /// Waits until so many statements of the store are on their way, each of
    /// which has a lane.
    async fn under_way(&mut self, least: u8) {
        until(|| self.proxy.under_way() >= usize::from(least)).await;
    }

    /// Takes every lane: a key for each, which the other session has inserted.
    async fn fill(&mut self) -> Vec<Asked<Reserved>> {
        self.lock_fresh(100..100 + LANES).await;
        self.proxy.plan(None);
        let mut full = Vec::new();
        for key in 100..100 + LANES {
            full.push(by_itself(self.reserve(request(key, 1)).await));
            // One after the other, or they would go together.
            self.under_way(key - 99).await;
        }
        full
    }

    /// Takes every lane with these ends, whose records the other session has
    /// locked.
    async fn fill_with_ends(&mut self, ends: Vec<Complete>) -> Vec<Asked<Written>> {
        self.session.run("begin").await;
        let lock = format!(
            "select state from {} where operation = 'together' for update skip locked",
            self.table
        );
        self.session.run(&lock).await;
        self.proxy.plan(None);
        let mut full = Vec::new();
        for (number, request) in (1..).zip(ends) {
            full.push(by_itself(self.end(request).await));
            self.under_way(number).await;
        }
        full
    }

    /// Begins another session, which has locked what stands at this key.
    async fn locked_by_another(&self, server: Server, key: u8) -> Session {
        let mut session = Session::open(&server.url()).await;
        let id = session.bytes(&[key; 32]);
        session.run("begin").await;
        let lock = format!(
            "select state from {} where id = {id} for update",
            self.table
        );
        session.run(&lock).await;
        session
    }

    async fn let_go(&mut self) {
        self.session.run("rollback").await;
    }

    /// Ends of attempts with a version: an answer, an error, and an answer of
    /// what has had a higher one.
    async fn ordered(&mut self) -> Vec<Complete> {
        let mut ends = Vec::new();
        for key in 30..33 {
            let versioned = Reserve {
                version: VersionBytes::new(VERSION.to_vec()),
                ..request(key, 1)
            };
            let Reserved::Won(won) = self.store.reserve(&versioned).await.unwrap() else {
                panic!("the key is fresh");
            };
            let mut end = end(key, 1, won.fence);
            if let (31, Ending::Answer(answer)) = (key, &mut end.ending) {
                answer.failed = true;
            }
            ends.push(end);
        }
        let (key, higher) = (self.session.bytes(&[32; 32]), self.session.bytes(HIGHER));
        let sql = format!(
            "update {} set version_applied = {higher} where id = {key}",
            self.table
        );
        self.session.run(&sql).await;
        ends
    }

    async fn exists(&mut self, key: u8) -> bool {
        let id = self.session.bytes(&[key; 32]);
        let sql = format!("select count(*) from {} where id = {id}", self.table);
        self.session.number(&sql).await == 1
    }
}

async fn each_of_many_is_told_what_stands_at_its_key(server: Server) {
    let mut scene = Scene::new(server).await;
    scene.complete(1).await;
    scene.won(2).await;
    let full = scene.fill().await;
    let other_payload = Reserve {
        fingerprint: Fingerprint::from_bytes([2; 32]),
        ..request(1, 7)
    };
    let mut fresh = Vec::new();
    for key in 10..30 {
        fresh.push(scene.reserve(request(key, key)).await);
    }
    let recorded = scene.reserve(request(1, 7)).await;
    let running = scene.reserve(request(2, 7)).await;
    let resent = scene.reserve(request(2, 1)).await;
    let mismatch = scene.reserve(other_payload).await;
    let twice = [
        scene.reserve(request(50, 1)).await,
        scene.reserve(request(50, 2)).await,
    ];
    scene.proxy.plan(None);
    scene.let_go().await;
    all_win(full).await;
    let mut fences = Vec::new();
    for asked in fresh {
        match asked.await {
            Ok(Reserved::Won(won)) => fences.push(won.fence),
            other => panic!("{other:?}"),
        }
    }
    match recorded.await.unwrap() {
        Reserved::Completed { answer, .. } => assert_eq!(answer.bytes, b"1"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        running.await.unwrap(),
        Reserved::InProgress { .. }
    ));
    match resent.await.unwrap() {
        Reserved::Won(won) => assert!(won.resent),
        other => panic!("{other:?}"),
    }
    assert!(matches!(mismatch.await.unwrap(), Reserved::Mismatch { .. }));
    // Not in one statement, and perhaps not in their order.
    let mut won = 0;
    for asked in twice {
        match asked.await.unwrap() {
            Reserved::Won(_) => won += 1,
            other => assert!(matches!(other, Reserved::InProgress { .. }), "{other:?}"),
        }
    }
    assert_eq!(won, 1);
    // Those in the lanes, some of which MariaDB lets try again, two for the
    // rest, and what the repeated one and the twin take by themselves.
    let trips = scene.proxy.trips();
    assert!(
        trips < usize::from(LANES) + 20,
        "{trips} for 26 that waited"
    );
    // Whoever won is who can end it, with the fence that it was told.
    for (key, fence) in (10..30).zip(fences) {
        let written = scene.store.complete(&end(key, key, fence)).await;
        assert_eq!(written, Ok(Written::Done), "key {key}");
    }
}

async fn a_key_that_another_session_has_locked_delays_no_other(server: Server) {
    let mut scene = Scene::new(server).await;
    let full = scene.fill().await;
    let mut other = Scene {
        session: Session::open(&server.url()).await,
        store: Arc::clone(&scene.store),
        proxy: Proxy::of_url(&server.url()).await.0,
        table: scene.table.clone(),
    };
    other.lock_fresh([5]).await;
    let stuck = scene.reserve(request(5, 1)).await;
    let mut neighbours = Vec::new();
    for key in [4, 6, 7] {
        neighbours.push(scene.reserve(request(key, 1)).await);
    }
    scene.let_go().await;
    all_win(full).await;
    for asked in neighbours {
        let asked = tokio::time::timeout(Duration::from_secs(20), asked);
        assert!(matches!(asked.await, Ok(Ok(Reserved::Won(_)))));
    }
    let mut stuck = stuck;
    let polled = std::future::poll_fn(|cx| Poll::Ready(stuck.as_mut().poll(cx).is_pending()));
    assert!(polled.await, "only its own caller waits for it");
    other.let_go().await;
    assert!(matches!(stuck.await, Ok(Reserved::Won(_))));
}

async fn a_record_that_another_session_has_locked_delays_no_other_end(server: Server) {
    let mut scene = Scene::new(server).await;
    let mut ends = Vec::new();
    for key in (4..8).chain(100..100 + LANES) {
        ends.push(end(key, 1, scene.won(key).await.fence));
    }
    let mut other = scene.locked_by_another(server, 5).await;
    let full = scene.fill_with_ends(ends.split_off(4)).await;
    let mut asked = Vec::new();
    for request in ends {
        asked.push(scene.end(request).await);
    }
    scene.let_go().await;
    let mut stuck = asked.remove(1);
    for asked in full.into_iter().chain(asked) {
        let asked = tokio::time::timeout(Duration::from_secs(20), asked);
        assert!(matches!(
            asked.await,
            Ok(Ok(Written::Done | Written::AlreadyDone))
        ));
    }
    let polled = std::future::poll_fn(|cx| Poll::Ready(stuck.as_mut().poll(cx).is_pending()));
    assert!(polled.await, "only its own caller waits for it");
    other.run("rollback").await;
    assert!(matches!(
        stuck.await,
        Ok(Written::Done | Written::AlreadyDone)
    ));
}

async fn one_that_the_server_refuses_is_told_so_and_no_other(server: Server) {
    let mut scene = Scene::new(server).await;
    let full = scene.fill().await;
    let refused = scene
        .reserve(Reserve {
            // The end of this lease is beyond what a column holds.
            lease_us: i64::MAX,
            ..request(5, 1)
        })
        .await;
    let mut neighbours = Vec::new();
    for key in [4, 6, 7] {
        neighbours.push(scene.reserve(request(key, 1)).await);
    }
    scene.let_go().await;
    all_win(full).await;
    all_win(neighbours).await;
    refused.await.unwrap_err();
    assert!(!scene.exists(5).await);
    assert!(scene.exists(4).await);
}

async fn whoever_leaves_before_it_is_sent_reserves_nothing(server: Server) {
    let mut scene = Scene::new(server).await;
    let full = scene.fill().await;
    let stays = scene.reserve(request(1, 1)).await;
    drop(scene.reserve(request(2, 1)).await);
    scene.let_go().await;
    all_win(full).await;
    assert!(matches!(stays.await, Ok(Reserved::Won(_))));
    assert!(!scene.exists(2).await);
}

async fn each_of_many_ends_is_told_whether_it_was_its_to_end(server: Server) {
    let mut scene = Scene::new(server).await;
    let mut ends = Vec::new();
    for key in (10..20).chain(100..100 + LANES) {
        ends.push(end(key, 1, scene.won(key).await.fence));
    }
    // What it says now must not replace what it has said.
    let again = Complete {
        ending: Ending::Answer(Recorded::new(&id(1), "json", false, b"2".to_vec())),
        ..scene.complete(1).await
    };
    let fence = scene.won(2).await.fence;
    let other_fence = end(2, 1, fence + 1);
    let other_claim = end(3, 9, scene.won(3).await.fence);
    let gone = end(4, 1, 1);
    let full = scene.fill_with_ends(ends.split_off(10)).await;
    let mut asked = Vec::new();
    for request in &ends {
        asked.push(scene.end(request.clone()).await);
    }
    let again = scene.end(again).await;
    let (other_fence, other_claim) = (scene.end(other_fence).await, scene.end(other_claim).await);
    let gone = scene.end(gone).await;
    scene.let_go().await;
    for asked in full.into_iter().chain(asked) {
        // Also what went together with another's was done once.
        assert!(matches!(
            asked.await,
            Ok(Written::Done | Written::AlreadyDone)
        ));
    }
    assert_eq!(again.await, Ok(Written::AlreadyDone));
    assert_eq!(other_fence.await, Ok(Written::Superseded));
    assert_eq!(other_claim.await, Ok(Written::Superseded));
    assert_eq!(gone.await, Ok(Written::Gone));
    for key in (10..20).chain([1]) {
        match scene.store.reserve(&request(key, 8)).await.unwrap() {
            Reserved::Completed { answer, .. } => {
                assert_eq!(answer.bytes, key.to_string().as_bytes());
                assert!(answer.is_intact(&id(key)));
            }
            other => panic!("{other:?}"),
        }
    }
    for key in [2, 3] {
        let running = scene.store.reserve(&request(key, 8)).await.unwrap();
        assert!(
            matches!(running, Reserved::InProgress { .. }),
            "{running:?}"
        );
    }
}

async fn each_of_many_ends_records_its_version_as_one_alone_does(server: Server) {
    let mut scene = Scene::new(server).await;
    let mut ends = Vec::new();
    for key in 100..100 + LANES {
        ends.push(end(key, 1, scene.won(key).await.fence));
    }
    let ordered = scene.ordered().await;
    let full = scene.fill_with_ends(ends).await;
    let mut versions = Vec::new();
    for request in ordered {
        versions.push(scene.end(request).await);
    }
    scene.let_go().await;
    for asked in full {
        assert!(asked.await.unwrap().is_done());
    }
    for ended in versions {
        assert!(ended.await.unwrap().is_done());
    }
    // An answer applies its version, an error does not, and none sinks.
    let five = scene.session.bytes(VERSION);
    let nine = scene.session.bytes(HIGHER);
    for (key, applied) in [
        (30, format!("= {five}")),
        (31, "is null".to_owned()),
        (32, format!("= {nine}")),
    ] {
        let key = scene.session.bytes(&[key; 32]);
        let sql = format!(
            "select count(*) from {} where id = {key} and version_applied {applied} \
             and version_recorded = {five} and version_running is null",
            scene.table
        );
        assert_eq!(scene.session.number(&sql).await, 1, "{applied}");
    }
}
