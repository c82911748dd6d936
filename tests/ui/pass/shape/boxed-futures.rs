#![deny(warnings)]

use std::pin::Pin;

use idem::{Error, idempotent};

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

/// Only the compiler sees through the alias.
#[idempotent(key = id, ttl = "1h")]
fn alias(id: u32) -> BoxFuture<'static, Result<u32, Error>> {
    Box::pin(async move { Ok(id) })
}

#[idempotent(key = id, ttl = "1h")]
fn with_method(id: u32) -> BoxFuture<'static, Result<u32, Error>> {
    async move { Ok(id) }.boxed()
}

#[idempotent(key = id, ttl = "1h", on_cancel = abandon)]
fn borrows<'a>(id: &'a str) -> BoxFuture<'a, Result<usize, Error>> {
    Box::pin(async move { Ok(id.len()) })
}

pub fn main() {
    drop(alias(1));
    drop(with_method(1));
    drop(borrows("a"));
}
