//! A store that cannot be looked into, or does not answer.

use async_trait::async_trait;
use axum::http::StatusCode;
use idem::store::{
    Audited, Complete, Count, Counts, Finding, MarkUnknown, MemoryStore, Meta, Page, Release,
    Renewer, Reserve, Reserved, Scan, Seen, Settle, Store, StoreAdmin, Sweep, Written,
};
use idem::{Engine, RecordId, StoreError, StoreErrorKind};
use idem_cli::ops::{self, Access};

use super::world::{Browser, TOKEN};

/// What the operators' side of the store does.
#[derive(Debug, Clone, Copy)]
enum Side {
    Missing,
    /// It fails.
    Away,
    /// It lists only what is open, as Redis.
    Open,
}

#[derive(Debug)]
struct Silent(MemoryStore, Side);

#[async_trait]
impl Store for Silent {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }
    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        self.0.pin(meta).await
    }
    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.0.check().await
    }
    async fn reserve(&self, request: &Reserve) -> Result<Reserved, StoreError> {
        self.0.reserve(request).await
    }
    async fn complete(&self, request: &Complete) -> Result<Written, StoreError> {
        self.0.complete(request).await
    }
    async fn release(&self, request: &Release) -> Result<Written, StoreError> {
        self.0.release(request).await
    }
    async fn mark_unknown(&self, request: &MarkUnknown) -> Result<Written, StoreError> {
        self.0.mark_unknown(request).await
    }
    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        self.0.sweep(request).await
    }
    fn admin(&self) -> Option<&dyn StoreAdmin> {
        (!matches!(self.1, Side::Missing)).then_some(self)
    }
    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        self.0.renewer().await
    }
}

impl Silent {
    fn side(&self) -> Result<&dyn StoreAdmin, StoreError> {
        let away = StoreError::new(StoreErrorKind::Transient, "the store is away");
        let open = matches!(self.1, Side::Open);
        self.0.admin().filter(|_| open).ok_or(away)
    }
}

#[async_trait]
impl StoreAdmin for Silent {
    async fn scan(&self, request: &Scan) -> Result<Page, StoreError> {
        let side = self.side()?;
        if !request.standing.is_open() {
            let kind = StoreErrorKind::Misconfigured;
            return Err(StoreError::new(
                kind,
                "this store keeps no list of finished records",
            ));
        }
        side.scan(request).await
    }
    async fn get(&self, id: &RecordId) -> Result<Option<Seen>, StoreError> {
        self.side()?.get(id).await
    }
    async fn settle(&self, request: &Settle) -> Result<Written, StoreError> {
        self.side()?.settle(request).await
    }
    async fn audit(&self, id: &RecordId) -> Result<Vec<Audited>, StoreError> {
        self.side()?.audit(id).await
    }
    async fn count(&self, request: &Count) -> Result<Counts, StoreError> {
        self.side()?.count(request).await
    }
}

async fn browser(side: Side) -> Browser {
    let store = Silent(MemoryStore::new(), side);
    let engine = Engine::builder(store).build().await.unwrap();
    let mut browser = Browser::new(ops::router(&engine, Access::token(TOKEN).unwrap()));
    browser.sign_in().await;
    browser
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_said_to_be_silent() {
    for (side, text) in [
        (Side::Away, "The store does not answer"),
        (Side::Missing, "This store cannot be looked into"),
    ] {
        let browser = browser(side).await;
        let record = format!("/records/{}", "0".repeat(64));
        let settle = format!("{record}/settle");
        for path in ["/", "/hour", "/records", "/find?id=0000", &record, &settle] {
            let answer = browser.get(path).await;
            assert_eq!(
                answer.status,
                StatusCode::SERVICE_UNAVAILABLE,
                "{side:?} {path}"
            );
            answer.says(&[text]);
        }
        // What needs no store is there.
        assert_eq!(browser.get("/find").await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_store_without_a_list_of_what_has_finished_shows_what_is_open() {
    let browser = browser(Side::Open).await;
    let page = browser.get("/").await;
    assert_eq!(page.status, StatusCode::OK);
    page.says(&["Nothing is stuck."]);
    let hour = browser.get("/hour").await;
    assert_eq!(hour.status, StatusCode::OK);
    hour.says(&[
        "First calls: 0 in the last hour",
        "Left out",
        "Completed, Released, Tombstones",
    ]);
    let list = browser.get("/records?standing=completed").await;
    assert_eq!(list.status, StatusCode::SERVICE_UNAVAILABLE);
    list.says(&["This store cannot show this"]);
}
