//! The primitives that a scheduler drives, under the names that the library
//! uses.

use std::cell::Cell;
use std::time::Duration;

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicUsize, Ordering};
pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};
pub(crate) use tokio::sync::{Notify, mpsc, oneshot};

thread_local! {
    /// The time, which goes on only when the worker sleeps. All of one
    /// schedule is on one thread of the system.
    pub(crate) static NOW_US: Cell<i64> = const { Cell::new(0) };
}

/// Sleeps while others do something, for as long as the scheduler likes.
pub(crate) async fn sleep(time: Duration) {
    shuttle::future::yield_now().await;
    let us = i64::try_from(time.as_micros()).unwrap();
    NOW_US.set(NOW_US.get() + us);
}

/// Nothing takes too long here.
pub(crate) async fn timeout<F: Future>(_: Duration, future: F) -> Result<F::Output, ()> {
    shuttle::future::yield_now().await;
    Ok(future.await)
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
