//! A store as operators have it.

use std::sync::Arc;

use async_trait::async_trait;
use idem::record::Standing;
use idem::store::{
    Capability, Complete, Finding, GiveBack, Lease, MarkUnknown, Meta, Release, Renewer, Reserve,
    Reserved, Standings, Store, StoreAdmin, Sweep, Written,
};
use idem::{StoreError, StoreErrorKind};

/// The store of an engine that looks and settles, and makes no calls.
///
/// 1. It pins nothing. An engine that starts on an empty store decides whether
///    the store has a secret; a look at it must not, and needs no secret.
/// 2. Its settings keep no engine from starting: a store that voids the promise
///    is the one to look at.
/// 3. It reserves nothing, so no body runs, and the renewal thread, which has
///    nothing to renew, opens no connection.
#[derive(Debug)]
pub(crate) struct OperatorsStore(pub(crate) Arc<dyn Store>);

fn no_calls() -> StoreError {
    StoreError::new(
        StoreErrorKind::Misconfigured,
        "this engine is for operators and makes no calls",
    )
}

#[async_trait]
impl Store for OperatorsStore {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    async fn pin(&self, meta: &Meta) -> Result<Meta, StoreError> {
        Ok(meta.clone())
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        Ok(Vec::new())
    }

    fn largest_answer(&self) -> Option<usize> {
        self.0.largest_answer()
    }

    async fn reserve(&self, _: &Reserve) -> Result<Reserved, StoreError> {
        Err(no_calls())
    }

    async fn complete(&self, _: &Complete) -> Result<Written, StoreError> {
        Err(no_calls())
    }

    async fn release(&self, _: &Release) -> Result<Written, StoreError> {
        Err(no_calls())
    }

    async fn mark_unknown(&self, _: &MarkUnknown) -> Result<Written, StoreError> {
        Err(no_calls())
    }

    async fn sweep(&self, request: &Sweep) -> Result<u64, StoreError> {
        self.0.sweep(request).await
    }

    async fn standings(&self, request: &Standings) -> Result<Vec<Option<Standing>>, StoreError> {
        self.0.standings(request).await
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.0.admin()
    }

    fn lacks(&self) -> &'static [Capability] {
        self.0.lacks()
    }

    async fn renewer(&self) -> Result<Box<dyn Renewer>, StoreError> {
        Ok(Box::new(Idle))
    }
}

/// A renewer that is never asked.
struct Idle;

#[async_trait]
impl Renewer for Idle {
    async fn renew(&mut self, _: &[Lease]) -> Result<Vec<bool>, StoreError> {
        Err(no_calls())
    }

    async fn mark_unknown(&mut self, _: &MarkUnknown) -> Result<Written, StoreError> {
        Err(no_calls())
    }

    async fn give_back(&mut self, _: &GiveBack) -> Result<Written, StoreError> {
        Err(no_calls())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use idem::store::MemoryStore;
    use idem::{Engine, Secret};

    use super::*;

    fn secret() -> Secret {
        Secret::new(*b"sixteen bytes ok").unwrap()
    }

    #[tokio::test]
    async fn looking_decides_nothing_about_the_secret_and_needs_none() {
        let store = MemoryStore::new();
        let operators = OperatorsStore(Arc::new(store.clone()));
        let looking = Engine::builder(operators).build().await.unwrap();
        assert_eq!(
            looking.admin().unwrap().counts(true).await.unwrap().unknown,
            0
        );

        let engine = Engine::builder(store.clone())
            .secret(secret())
            .build()
            .await
            .unwrap();
        let call = engine.call("payments.charge", &"o-7", Duration::from_secs(60));
        call.run(async { Ok::<_, idem::Error>(1) }).await.unwrap();
        let counts = looking.admin().unwrap().counts(true).await.unwrap();
        assert_eq!(counts.finished, Some(1));
    }

    #[tokio::test]
    async fn an_engine_for_operators_runs_no_body() {
        let operators = OperatorsStore(Arc::new(MemoryStore::new()));
        let engine = Engine::builder(operators).build().await.unwrap();
        let call = engine.call("payments.charge", &"o-7", Duration::from_secs(60));
        let refused = call
            .run(async { panic!("the body ran") as Result<(), idem::Error> })
            .await;
        assert!(matches!(refused, Err(idem::Error::Store(_))), "{refused:?}");
    }
}
