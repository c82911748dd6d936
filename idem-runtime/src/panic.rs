//! A future's panic as a value.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// What a panic carries.
pub(crate) type Panic = Box<dyn Any + Send>;

/// Polls a future, and gives its panic as a value. It is not polled again
/// after one.
pub(crate) struct CatchPanic<'a, F>(pub(crate) Pin<&'a mut F>);

impl<F: Future> Future for CatchPanic<'_, F> {
    type Output = Result<F::Output, Panic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.0.as_mut();
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}
