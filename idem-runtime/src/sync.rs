//! The primitives that concurrent code here is built from, in one place, so
//! that a scheduler for tests can replace them.

#[cfg(feature = "sqlite")]
pub(crate) use std::sync::Condvar;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
pub(crate) use tokio::sync::{Notify, OnceCell, mpsc, oneshot};
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) use tokio::sync::{OwnedSemaphorePermit, Semaphore};
pub(crate) use tokio::time::{sleep, timeout};

/// Locks, ignoring poison: every critical section here leaves its data whole
/// at each step, and a panic elsewhere must not lock out other keys.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits, ignoring poison as [`lock`] does.
#[cfg(feature = "sqlite")]
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar
        .wait(guard)
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
