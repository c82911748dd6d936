//! A test for each guard of a write: without it the write would land on a
//! record that has changed since it was looked at.
//!
//! The proxy holds the write on its way while somebody else changes the row.
//! Each change touches one guarded column only, so that one guard alone stops
//! the write.

use std::sync::Arc;

use idem::identity::{Fingerprint, RecordId};
use idem::record::{Claim, Recorded, VersionBytes};
use idem::store::{
    Complete, Ending, Holder, Reserve, Reserved, Store, Sweep, Takeover, Won, Written,
};

use crate::place::{Server, on_each_server, prefix};
use crate::proxy::Proxy;
use crate::session::Session;

on_each_server! {
    a_lease_that_is_renewed_before_a_taker_writes_is_not_taken_over,
    an_outcome_that_is_healed_before_a_taker_writes_is_replayed,
    a_claim_that_changed_before_a_taker_writes_is_looked_at_again,
    a_fence_that_changed_before_a_taker_writes_is_looked_at_again,
    an_end_that_comes_before_a_release_is_not_released,
    an_answer_under_another_claim_is_not_recorded,
    an_answer_under_another_fence_is_not_recorded,
    an_answer_for_what_is_not_running_is_not_recorded,
    an_applied_version_never_sinks,
    an_expiry_on_a_running_or_unknown_row_is_not_swept,
}

fn rerun(id: u8, claim: u8) -> Reserve {
    Reserve {
        id: RecordId::from_bytes([id; 32]),
        operation: "guards".to_owned(),
        label: None,
        scope: None,
        fingerprint: Fingerprint::from_bytes([1; 32]),
        elements: Vec::new(),
        claim: Claim::from_bytes([claim; 16]),
        lease_us: 30_000_000,
        grace_us: 5_000_000,
        takeover: Takeover::Rerun,
        max_takeovers: 5,
        version: None,
    }
}

/// A store behind a proxy, and another session on its table.
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
            store: server.store(&url, &prefix, 2).await,
            proxy,
            session: Session::open(&server.url()).await,
            table: format!("{prefix}records"),
        }
    }

    async fn sql(&mut self, sql: &str) {
        let sql = sql.replace("{records}", &self.table);
        self.session.run(&sql).await;
    }

    async fn number(&mut self, column: &str) -> i64 {
        let sql = format!("select cast({column} as {{int}}) from {}", self.table);
        let int = match self.session {
            Session::Postgres(_) => "bigint",
            Session::MySql(_) => "signed",
        };
        self.session.number(&sql.replace("{int}", int)).await
    }

    async fn reserve(&self, id: u8) -> Won {
        match self.store.reserve(&rerun(id, 1)).await.unwrap() {
            Reserved::Won(won) => won,
            other => panic!("{other:?}"),
        }
    }

    /// Lets a caller see a record that it may take over, changes that by
    /// `change` before the caller's write arrives, and returns what the caller
    /// is told.
    async fn changed_meanwhile(&mut self, prepare: &str, change: &str) -> Reserved {
        // Twice in peace: the first time prepares each statement.
        self.reserve(8).await;
        for claim in [2, 3] {
            self.sql("update {records} set lease_until_us = 1").await;
            self.proxy.plan(None);
            let peace = self.store.reserve(&rerun(8, claim)).await.unwrap();
            assert!(matches!(peace, Reserved::Won(_)), "{peace:?}");
        }
        let write = self.proxy.trips();
        self.sql("delete from {records}").await;

        self.reserve(7).await;
        self.sql(prepare).await;
        // The write is the last request.
        self.proxy.hold(write);
        let store = Arc::clone(&self.store);
        let taker = tokio::spawn(async move { store.reserve(&rerun(7, 2)).await.unwrap() });
        self.proxy.has_held(&taker).await;
        self.sql(change).await;
        self.proxy.let_go();
        taker.await.unwrap()
    }
}

async fn a_lease_that_is_renewed_before_a_taker_writes_is_not_taken_over(server: Server) {
    let mut scene = Scene::new(server).await;
    let told = scene.changed_meanwhile(
        "update {records} set lease_until_us = 1",
        "update {records} set lease_until_us = started_us + 3600000000",
    );
    let told = told.await;
    assert!(matches!(told, Reserved::InProgress { .. }), "{told:?}");
}

async fn an_outcome_that_is_healed_before_a_taker_writes_is_replayed(server: Server) {
    let mut scene = Scene::new(server).await;
    let told = scene.changed_meanwhile(
        "update {records} set state = 4, lease_until_us = null, reason = 2",
        "update {records} set state = 2, reason = null, finished_us = started_us, codec = 'json',
            failed = false, answer = '1', answer_digest = payload_digest",
    );
    let told = told.await;
    assert!(matches!(told, Reserved::Completed { .. }), "{told:?}");
}

/// What is won after a second look continues what that look found.
fn won_as_the_ninth(told: &Reserved) {
    let Reserved::Won(won) = told else {
        panic!("{told:?}");
    };
    assert_eq!(won.attempt, 9, "it was decided on what stood there before");
}

async fn a_claim_that_changed_before_a_taker_writes_is_looked_at_again(server: Server) {
    let mut scene = Scene::new(server).await;
    let claim = scene.session.bytes(&[9; 16]);
    let change = format!("update {{records}} set claim = {claim}, attempt = 8");
    let lapse = "update {records} set lease_until_us = 1";
    won_as_the_ninth(&scene.changed_meanwhile(lapse, &change).await);
}

async fn a_fence_that_changed_before_a_taker_writes_is_looked_at_again(server: Server) {
    let mut scene = Scene::new(server).await;
    let told = scene.changed_meanwhile(
        "update {records} set lease_until_us = 1",
        "update {records} set fence = fence + 3600000000, attempt = 8",
    );
    won_as_the_ninth(&told.await);
    assert_eq!(scene.number("attempt").await, 9);
}

/// The same guards, in a write that is no reservation.
async fn an_end_that_comes_before_a_release_is_not_released(server: Server) {
    let mut scene = Scene::new(server).await;
    let release = |won: &Won, id| idem::store::Release {
        holder: holder(won, id),
        ttl_us: None,
        probed: false,
    };
    for id in [8, 9] {
        let won = scene.reserve(id).await;
        scene.proxy.plan(None);
        let released = scene.store.release(&release(&won, id)).await.unwrap();
        assert_eq!(released, Written::Done);
    }
    let write = scene.proxy.trips();
    scene.sql("delete from {records}").await;

    let won = scene.reserve(7).await;
    scene.proxy.hold(write);
    let (store, request) = (Arc::clone(&scene.store), release(&won, 7));
    let releasing = tokio::spawn(async move { store.release(&request).await.unwrap() });
    scene.proxy.has_held(&releasing).await;
    let end = "update {records} set state = 2, finished_us = started_us, codec = 'json',
        failed = false, answer = '1', answer_digest = payload_digest";
    scene.sql(end).await;
    scene.proxy.let_go();
    assert_eq!(releasing.await.unwrap(), Written::Superseded);
    assert_eq!(scene.number("state").await, 2);
}

fn holder(won: &Won, id: u8) -> Holder {
    Holder {
        id: RecordId::from_bytes([id; 32]),
        claim: Claim::from_bytes([1; 16]),
        fence: won.fence,
    }
}

/// Completes an attempt on a row that was changed, and returns what is told
/// and what state the row is in.
async fn completed_after(scene: &mut Scene, change: &str) -> (Written, i64) {
    let won = scene.reserve(7).await;
    scene.sql(change).await;
    let holder = holder(&won, 7);
    let answer = Recorded::new(&holder.id, "json", false, b"1".to_vec());
    let complete = Complete {
        holder,
        ending: Ending::Answer(answer),
        ttl_us: None,
    };
    let written = scene.store.complete(&complete).await.unwrap();
    (written, scene.number("state").await)
}

async fn an_answer_under_another_claim_is_not_recorded(server: Server) {
    let mut scene = Scene::new(server).await;
    let claim = scene.session.bytes(&[9; 16]);
    let change = format!("update {{records}} set claim = {claim}");
    let told = completed_after(&mut scene, &change).await;
    assert_eq!(told, (Written::Superseded, 0));
}

async fn an_answer_under_another_fence_is_not_recorded(server: Server) {
    let mut scene = Scene::new(server).await;
    let change = "update {records} set fence = fence + 1";
    let told = completed_after(&mut scene, change).await;
    assert_eq!(told, (Written::Superseded, 0));
}

async fn an_answer_for_what_is_not_running_is_not_recorded(server: Server) {
    for state in [1, 3] {
        let mut scene = Scene::new(server).await;
        let change = format!("update {{records}} set state = {state}, reason = 1");
        let (written, stands) = completed_after(&mut scene, &change).await;
        assert_ne!(written, Written::Done, "{state}");
        assert_eq!(stands, state);
    }
}

async fn an_applied_version_never_sinks(server: Server) {
    let mut scene = Scene::new(server).await;
    let request = Reserve {
        version: VersionBytes::new(vec![5]),
        ..rerun(7, 1)
    };
    let Reserved::Won(won) = scene.store.reserve(&request).await.unwrap() else {
        panic!("the key is fresh");
    };
    let applied = scene.session.bytes(&[9]);
    let change = format!("update {{records}} set version_applied = {applied}");
    scene.sql(&change).await;
    let holder = holder(&won, 7);
    let complete = Complete {
        holder,
        ending: Ending::Answer(Recorded::new(&holder.id, "json", false, b"1".to_vec())),
        ttl_us: None,
    };
    let written = scene.store.complete(&complete).await.unwrap();
    assert_eq!(written, Written::Done);
    let stays = format!("case when version_applied = {applied} then 1 else 0 end");
    assert_eq!(scene.number(&stays).await, 1);
}

async fn an_expiry_on_a_running_or_unknown_row_is_not_swept(server: Server) {
    let mut scene = Scene::new(server).await;
    scene.reserve(7).await;
    for state in [0, 4] {
        let change = format!("update {{records}} set state = {state}, expires_us = 1");
        scene.sql(&change).await;
        let sweep = Sweep {
            limit: 10,
            grace_us: 0,
        };
        assert_eq!(scene.store.sweep(&sweep).await.unwrap(), 0);
    }
}
