//! Functions that are asynchronous without the keyword.

use std::pin::Pin;

use idem::{Error, idempotent};

use crate::{Runs, once};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

trait FutureExt: Future + Sized + Send {
    fn boxed<'a>(self) -> BoxFuture<'a, Self::Output>
    where
        Self: 'a,
    {
        Box::pin(self)
    }
}

impl<F: Future + Send> FutureExt for F {}

#[allow(clippy::manual_async_fn, reason = "the shape is the point")]
#[idempotent(key = id, ttl = "1h")]
fn opaque(runs: Runs, id: u32) -> impl Future<Output = Result<u32, Error>> + Send {
    async move {
        runs.add();
        Ok(id)
    }
}

#[idempotent(key = id, ttl = "1h")]
fn boxed(runs: Runs, id: u32) -> Pin<Box<dyn Future<Output = Result<u32, Error>> + Send>> {
    Box::pin(async move {
        runs.add();
        Ok(id)
    })
}

#[idempotent(key = id, ttl = "1h")]
fn alias(runs: Runs, id: u32) -> BoxFuture<'static, Result<u32, Error>> {
    Box::pin(async move {
        runs.add();
        Ok(id)
    })
}

#[idempotent(key = id, ttl = "1h", on_cancel = abandon)]
fn method<'a>(runs: &'a Runs, id: u32) -> BoxFuture<'a, Result<u32, Error>> {
    async move {
        runs.add();
        Ok(id)
    }
    .boxed()
}

#[tokio::test]
async fn futures_that_are_returned() {
    let runs = Runs::default();
    assert_eq!(once(&runs, || opaque(runs.clone(), 1)).await, 1);
    assert_eq!(once(&runs, || boxed(runs.clone(), 2)).await, 2);
    assert_eq!(once(&runs, || alias(runs.clone(), 3)).await, 3);
    assert_eq!(once(&runs, || method(&runs, 4)).await, 4);
}

/// Nothing happens before the future is polled: not even the key is computed.
#[test]
fn a_future_that_is_dropped_has_done_nothing() {
    let runs = Runs::default();
    drop((
        opaque(runs.clone(), 1),
        boxed(runs.clone(), 1),
        alias(runs.clone(), 1),
        method(&runs, 1),
    ));
    assert_eq!(runs.count(), 0);
}
