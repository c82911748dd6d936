//! Type parameters, const parameters, lifetimes, `impl Trait` arguments.

use std::borrow::Cow;
use std::fmt::Display;

use idem::{Error, idempotent};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Runs, engine, once};

#[idempotent(key = value, ttl = "1h", name = "generic")]
async fn generic<T>(runs: Runs, value: T) -> Result<T, Error>
where
    T: Serialize + DeserializeOwned + Send + 'static,
{
    runs.add();
    Ok(value)
}

#[idempotent(key = (N, id), ttl = "1h", name = "sized")]
async fn sized<const N: usize>(runs: Runs, bytes: [u8; N], id: u32) -> Result<usize, Error> {
    runs.add();
    Ok(bytes.len() + usize::try_from(id).unwrap())
}

#[idempotent(key = show(&value), ttl = "1h", name = "opaque")]
async fn opaque(
    runs: Runs,
    value: impl Display + Send + Sync + 'static,
    show: impl Fn(&dyn Display) -> String + Send + Sync + 'static,
) -> Result<String, Error> {
    runs.add();
    Ok(show(&value))
}

#[idempotent(key = (long, short), ttl = "1h", on_cancel = abandon)]
async fn lifetimes<'long: 'short, 'short>(
    runs: &'short Runs,
    long: &'long str,
    short: Cow<'short, str>,
    elided: &str,
) -> Result<String, Error> {
    runs.add();
    Ok(format!("{long}{short}{elided}"))
}

struct Store<'a, T> {
    items: &'a [T],
    runs: Runs,
}

impl<'a, T: Display + Sync> Store<'a, T> {
    #[idempotent(key = at, ttl = "1h", name = "store.show", on_cancel = abandon)]
    async fn show(&self, at: usize) -> Result<String, Error> {
        self.runs.add();
        Ok(self.items[at].to_string())
    }

    /// What is captured is spelled out.
    #[allow(clippy::manual_async_fn, reason = "the shape is the point")]
    #[idempotent(key = at, ttl = "1h", name = "store.captures", on_cancel = abandon)]
    fn captures<'s>(
        &'s self,
        at: usize,
    ) -> impl Future<Output = Result<String, Error>> + use<'a, 's, T> {
        async move {
            self.runs.add();
            Ok(self.items[at].to_string())
        }
    }
}

#[tokio::test]
async fn parameters_of_types_and_sizes() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || generic(runs.clone(), 5_u32)).await, 5);
    assert_eq!(once(&runs, || sized(runs.clone(), [1, 2], 3)).await, 5);
    let opaque = || opaque(runs.clone(), 5, |value| format!("<{value}>"));
    assert_eq!(once(&runs, opaque).await, "<5>");
}

#[tokio::test]
async fn instances_are_told_apart_by_their_key() {
    let runs = Runs::default();
    let engine = engine().await;
    let two = engine.scope(sized(runs.clone(), [0; 2], 1)).await;
    let three = engine.scope(sized(runs.clone(), [0; 3], 1)).await;
    assert_eq!((two, three), (Ok(3), Ok(4)));
}

#[tokio::test]
async fn lifetimes_of_functions_and_impls() {
    let runs = Runs::default();
    let call = || lifetimes(&runs, "a", Cow::Borrowed("b"), "c");
    assert_eq!(once(&runs, call).await, "abc");
    let items = [1, 2];
    let store = Store {
        items: &items,
        runs: runs.clone(),
    };
    assert_eq!(once(&runs, || store.show(1)).await, "2");
    assert_eq!(once(&runs, || store.captures(0)).await, "1");
}
