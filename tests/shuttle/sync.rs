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

/// Those of tokio, which no runtime drives, with a place to be interrupted in
/// front of each step.
pub(crate) mod watch {
    use shuttle::thread::yield_now;
    use tokio::sync::watch;

    #[derive(Debug)]
    pub(crate) struct Sender<T>(watch::Sender<T>);

    #[derive(Debug)]
    pub(crate) struct Receiver<T>(watch::Receiver<T>);

    impl<T> Sender<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(watch::Sender::new(value))
        }

        pub(crate) fn subscribe(&self) -> Receiver<T> {
            yield_now();
            Receiver(self.0.subscribe())
        }

        pub(crate) fn send_replace(&self, value: T) -> T {
            yield_now();
            self.0.send_replace(value)
        }
    }

    impl<T> Receiver<T> {
        pub(crate) async fn wait_for(
            &mut self,
            condition: impl FnMut(&T) -> bool,
        ) -> Result<watch::Ref<'_, T>, watch::error::RecvError> {
            yield_now();
            self.0.wait_for(condition).await
        }
    }
}
