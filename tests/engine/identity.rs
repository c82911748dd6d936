//! What makes two calls the same, and what is no key.

use std::borrow::Borrow;
use std::time::Duration;

use idem::store::MemoryStore;
use idem::{Engine, Error, idempotent, optional};

use crate::{DAY, Runs, memory};

#[idempotent(
    key = (merchant, order), scope = tenant, payload = (amount, note), label = order,
    ttl = "1h", name = "identity.charge", engine = engine
)]
async fn charge(
    engine: Engine,
    runs: Runs,
    tenant: &'static str,
    merchant: &'static str,
    order: &'static str,
    amount: u64,
    note: Option<String>,
) -> Result<usize, Error> {
    Ok(runs.add())
}

#[tokio::test]
async fn scope_key_and_payload_tell_calls_apart() {
    let (e, r) = (memory().await, Runs::default());
    let call = |tenant, merchant, order, amount, note: Option<&str>| {
        charge(
            e.clone(),
            r.clone(),
            tenant,
            merchant,
            order,
            amount,
            note.map(str::to_owned),
        )
    };
    assert_eq!(call("t", "ab", "c", 1, None).await, Ok(1));
    assert_eq!(call("t", "a", "bc", 1, None).await, Ok(2));
    assert_eq!(call("u", "ab", "c", 1, None).await, Ok(3));
    assert_eq!(call("t", "ab", "c", 1, None).await, Ok(1));
    let differs = |labels: &[&str]| {
        Err(Error::PayloadMismatch {
            differs: labels.iter().map(|&label| label.to_owned()).collect(),
        })
    };
    assert_eq!(call("t", "ab", "c", 2, None).await, differs(&["amount"]));
    assert_eq!(call("t", "ab", "c", 1, Some("x")).await, differs(&["note"]));
    assert_eq!(
        call("t", "ab", "c", 2, Some("x")).await,
        differs(&["amount", "note"])
    );
    for (merchant, order) in [("", "c"), ("ab", " \t\n")] {
        let answer = call("t", merchant, order, 1, None).await;
        assert!(
            matches!(answer, Err(Error::InvalidKey { .. })),
            "{answer:?}"
        );
    }
    assert_eq!(r.count(), 3);
}

#[tokio::test]
async fn a_plain_call_and_an_annotated_function_share_records() {
    let (e, r) = (memory().await, Runs::default());
    assert_eq!(
        charge(e.clone(), r.clone(), "t", "m", "o", 5, None).await,
        Ok(1)
    );
    let plain: Result<usize, Error> = e
        .call("identity.charge", &("m", "o"), DAY)
        .scope("t")
        .payload(&(5, None::<String>))
        .run(async { panic!("a second run") })
        .await;
    assert_eq!(plain, Ok(1));
    let mismatch: Result<usize, Error> = e
        .call("identity.charge", &("m", "o"), DAY)
        .scope("t")
        .payload(&(6, None::<String>))
        .run(async { panic!("a second run") })
        .await;
    let differs = vec!["0".to_owned()];
    assert_eq!(mismatch, Err(Error::PayloadMismatch { differs }));
}

#[tokio::test]
async fn missing_and_blank_keys_are_no_keys_unless_meant() {
    let engine = memory().await;
    async fn call<K: serde::Serialize>(engine: &Engine, key: K) -> Result<(), Error> {
        engine
            .call("identity.key", &key, DAY)
            .run(async { Ok(()) })
            .await
    }
    let e = &engine;
    for answer in [
        call(e, None::<u32>).await,
        call(e, ()).await,
        call(e, "").await,
        call(e, "  ").await,
        call(e, ("order", None::<u32>)).await,
        call(e, (String::new(), 1)).await,
    ] {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::InvalidKey { .. }), "{error:?}");
        assert!(error.to_string().contains("did not run"));
    }
    call(e, ("order", optional(None::<u32>))).await.unwrap();
    call(e, ("order", optional(""))).await.unwrap();
    call(e, 0).await.unwrap();
    call(e, false).await.unwrap();
    let error = call(e, (1, [0.5, f64::NAN])).await.unwrap_err();
    let Error::Fingerprint { path, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(path, "$[1][1]");
    assert!(!error.to_string().contains("NaN,"), "no value: {error}");
}

#[tokio::test]
async fn a_payload_of_one_element_is_not_the_element() {
    let engine = memory().await;
    let call = || engine.call("identity.single", &1, DAY);
    let body = || async { Ok::<_, Error>(()) };
    call().payload(&5).run(body()).await.unwrap();
    for answer in [
        call().payload(&(5,)).run(body()).await,
        call().payload(&[5]).run(body()).await,
        call().payload(&((5,),)).run(body()).await,
    ] {
        assert!(answer.unwrap_err().is_mismatch());
    }
}

#[tokio::test]
async fn a_zero_ttl_is_refused_before_anything_is_reserved() {
    let store = MemoryStore::new();
    let engine = crate::engine(store.clone()).await;
    let call = engine.call("identity.ttl", &1, Duration::ZERO);
    let answer: Result<(), Error> = call.run(async { Ok(()) }).await;
    assert!(matches!(answer, Err(Error::Misuse { .. })));
    assert!(store.is_empty());
    let shortest = engine.call("identity.ttl", &1, Duration::from_nanos(1));
    shortest.run(async { Ok::<_, Error>(()) }).await.unwrap();
}

struct App {
    idem: Engine,
}

impl Borrow<Engine> for App {
    fn borrow(&self) -> &Engine {
        &self.idem
    }
}

impl App {
    #[idempotent(
        key = order, ttl = Duration::from_secs(60), name = "identity.method",
        engine = self.idem, clone = self
    )]
    async fn by_field(&self, order: u32) -> Result<u32, Error> {
        Ok(order)
    }
}

impl Clone for App {
    fn clone(&self) -> Self {
        Self {
            idem: self.idem.clone(),
        }
    }
}

#[idempotent(key = order, ttl = forever, name = "identity.borrow", engine = app)]
async fn by_borrow(app: App, order: u32) -> Result<u32, Error> {
    Ok(order)
}

#[idempotent(key = order, ttl = "1h")]
async fn derived(order: u32) -> Result<u32, Error> {
    Ok(order)
}

#[tokio::test]
async fn the_engine_is_given_or_scoped_or_there_is_none() {
    let app = App {
        idem: memory().await,
    };
    assert_eq!(app.by_field(1).await, Ok(1));
    assert_eq!(by_borrow(app.clone(), 1).await, Ok(1));
    assert_eq!(derived(1).await, Err(Error::NoEngine));
    assert_eq!(app.idem.scope(derived(1)).await, Ok(1));
    // Carried into bodies that run in tasks of their own.
    let outer: Result<u32, Error> = app
        .idem
        .scope(app.idem.call("identity.outer", &1, DAY).run(derived(2)))
        .await;
    assert_eq!(outer, Ok(2));
}

#[tokio::test]
async fn a_strict_engine_refuses_a_derived_name_and_says_which_one_to_keep() {
    let engine = Engine::builder(MemoryStore::new())
        .secret(idem::Secret::new(*b"0123456789abcdef").unwrap())
        .strict()
        .accept_loss(idem::store::Finding::NotShared)
        .build()
        .await
        .unwrap();
    let Err(Error::Misuse { reason }) = engine.scope(derived(1)).await else {
        panic!("a strict engine takes no derived name");
    };
    assert!(
        reason.contains("name = \"engine::identity::derived\""),
        "{reason}"
    );
}

#[tokio::test]
async fn a_nested_function_without_a_name_is_refused_at_the_first_call() {
    #[idempotent(key = order, ttl = "1h")]
    async fn nested(order: u32) -> Result<u32, Error> {
        Ok(order)
    }
    let answer = memory().await.scope(nested(1)).await;
    assert!(matches!(answer, Err(Error::Misuse { .. })), "{answer:?}");
}

mod one {
    #[super::idempotent(key = order, ttl = "1h", name = "identity.twice")]
    pub(super) async fn twice(order: u32) -> Result<u32, super::Error> {
        Ok(order)
    }
}

mod two {
    #[super::idempotent(key = order, ttl = "1h", name = "identity.twice")]
    pub(super) async fn twice(order: u32) -> Result<u32, super::Error> {
        Ok(order + 1)
    }
}

#[idempotent(key = 1 + offset, ttl = "1h", name = "identity.generic")]
async fn generic<T>(offset: u32, value: T) -> Result<T, Error>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
{
    Ok(value)
}

#[tokio::test]
async fn one_name_stands_for_one_function_and_one_type() {
    let engine = memory().await;
    assert_eq!(engine.scope(one::twice(1)).await, Ok(1));
    let Err(Error::Misuse { reason }) = engine.scope(two::twice(2)).await else {
        panic!("one name for two functions");
    };
    assert_eq!(reason.matches("identity.rs:").count(), 2, "{reason}");
    assert_eq!(engine.scope(generic(1, 5_u8)).await, Ok(5));
    let other = engine.scope(generic(2, "text".to_owned())).await;
    assert!(matches!(other, Err(Error::Misuse { .. })), "{other:?}");
}
