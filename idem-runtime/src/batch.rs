//! Many calls of one kind, some at once.

use std::fmt;
use std::iter::Fuse;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

use crate::panic::{CatchPanic, Panic};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, lock};

/// As many as keep the 10 connections of a store busy, and a few beside them
/// whose bodies wait for something else.
const AT_ONCE: usize = 16;
const MOST_AT_ONCE: usize = 1_024;

/// Calls that [`batch`] makes; await it, or set how many run at once first.
#[derive(Debug)]
#[must_use = "await it"]
pub struct Batch<I, F> {
    items: I,
    call: F,
    at_once: usize,
}

/// Makes one call for each item and returns one result for each, in the order of
/// the items.
///
/// `call` makes the future of an item, such as that of an annotated function; it
/// is asked for when there is room, so that a million items cost no more memory
/// than those that run and the results. 16 run at once unless
/// [`at_once`](Batch::at_once) says otherwise: as many as keep a store's
/// connections busy, 10 by default.
///
/// One item that fails stops nobody: its result is its error. Two items with one
/// key are two calls of it: the second waits, and gets the first one's answer.
///
/// All calls are polled by the caller's task, so `call` may borrow, and the
/// task's [engine](crate::Engine::scope) is theirs. The bodies of annotated
/// functions run in tasks of their own (`finish`).
///
/// # Cancel safety
/// Dropping the future begins no further item. Those that run are dropped as
/// single calls are: under `finish` their bodies go on and their answers are
/// recorded. The results are lost; make the same batch again, and what is
/// recorded is replayed.
///
/// # Panics
/// If an item's call or `call` itself does, with the panic of the first of them,
/// after all other items have ended.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = idem::Engine::builder(idem::store::MemoryStore::new()).build().await?;
/// use idem::{Error, idempotent};
///
/// #[idempotent(name = "crm.apply", key = id, ttl = "24h")]
/// async fn apply(id: u32) -> Result<u32, Error> {
///     Ok(id * 10)
/// }
///
/// let results = engine.scope(async { idem::batch([3, 1, 2], apply).await }).await;
/// assert_eq!(results, [Ok(30), Ok(10), Ok(20)]);
/// # Ok(()) }
/// ```
pub fn batch<I, F, Fut>(items: I, call: F) -> Batch<I::IntoIter, F>
where
    I: IntoIterator,
    F: FnMut(I::Item) -> Fut,
    Fut: Future,
{
    Batch {
        items: items.into_iter(),
        call,
        at_once: AT_ONCE,
    }
}

impl<I, F> Batch<I, F> {
    /// Sets how many calls run at once: 1 to 1,024, by default 16. One at a time
    /// keeps the order of the items for their bodies too.
    pub fn at_once(mut self, calls: usize) -> Self {
        self.at_once = calls.clamp(1, MOST_AT_ONCE);
        self
    }
}

impl<I, F, Fut> IntoFuture for Batch<I, F>
where
    I: Iterator,
    F: FnMut(I::Item) -> Fut,
    Fut: Future,
{
    type Output = Vec<Fut::Output>;
    type IntoFuture = Running<I, F, Fut>;

    fn into_future(self) -> Running<I, F, Fut> {
        Running {
            items: self.items.fuse(),
            call: self.call,
            at_once: self.at_once,
            running: Vec::new(),
            caller: Arc::default(),
            results: Vec::new(),
            panic: None,
        }
    }
}

/// A [`batch`] under way.
#[must_use = "await it"]
pub struct Running<I, F, Fut: Future> {
    items: Fuse<I>,
    call: F,
    at_once: usize,
    running: Vec<Call<Fut>>,
    caller: Arc<Mutex<Option<Waker>>>,
    /// By the place of their items; none for what runs, or has panicked.
    results: Vec<Option<Fut::Output>>,
    panic: Option<Panic>,
}

/// One call that has not ended.
struct Call<Fut> {
    /// The place of its item.
    at: usize,
    future: Pin<Box<Fut>>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Tells which of the calls is to be polled again.
struct Bell {
    has_rung: AtomicBool,
    caller: Arc<Mutex<Option<Waker>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.has_rung.store(true, Ordering::SeqCst);
        let caller = lock(&self.caller).clone();
        if let Some(caller) = caller {
            caller.wake();
        }
    }
}

impl<Fut: Future> Call<Fut> {
    fn new(at: usize, future: Fut, caller: &Arc<Mutex<Option<Waker>>>) -> Self {
        let bell = Arc::new(Bell {
            has_rung: AtomicBool::new(true),
            caller: Arc::clone(caller),
        });
        Self {
            at,
            future: Box::pin(future),
            waker: Waker::from(Arc::clone(&bell)),
            bell,
        }
    }

    /// Polls it if it asked for that.
    fn poll(&mut self) -> Poll<Result<Fut::Output, Panic>> {
        if !self.bell.has_rung.swap(false, Ordering::SeqCst) {
            return Poll::Pending;
        }
        let mut future = CatchPanic(self.future.as_mut());
        Pin::new(&mut future).poll(&mut Context::from_waker(&self.waker))
    }
}

impl<I, F, Fut> Running<I, F, Fut>
where
    I: Iterator,
    F: FnMut(I::Item) -> Fut,
    Fut: Future,
{
    /// Begins what there is room for.
    fn fill(&mut self) {
        while self.running.len() < self.at_once {
            let Some(item) = self.items.next() else {
                return;
            };
            let at = self.results.len();
            self.results.push(None);
            match catch_unwind(AssertUnwindSafe(|| (self.call)(item))) {
                Ok(future) => self.running.push(Call::new(at, future, &self.caller)),
                Err(panic) => self.panicked(panic),
            }
        }
    }

    fn panicked(&mut self, panic: Panic) {
        self.panic.get_or_insert(panic);
    }
}

/// Nothing here is pinned but what has a box of its own.
impl<I, F, Fut: Future> Unpin for Running<I, F, Fut> {}

impl<I, F, Fut> Future for Running<I, F, Fut>
where
    I: Iterator,
    F: FnMut(I::Item) -> Fut,
    Fut: Future,
{
    type Output = Vec<Fut::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // Before any bell is looked at: what rings from now on wakes this task.
        *lock(&this.caller) = Some(cx.waker().clone());
        this.fill();
        let mut at = 0;
        while let Some(call) = this.running.get_mut(at) {
            match call.poll() {
                Poll::Pending => at += 1,
                Poll::Ready(ended) => {
                    let place = this.running.swap_remove(at).at;
                    match ended {
                        Ok(result) => this.results[place] = Some(result),
                        Err(panic) => this.panicked(panic),
                    }
                }
            }
        }
        this.fill();
        if !this.running.is_empty() {
            let has_rung = |call: &Call<Fut>| call.bell.has_rung.load(Ordering::SeqCst);
            if this.running.iter().any(has_rung) {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        if let Some(panic) = this.panic.take() {
            resume_unwind(panic);
        }
        Poll::Ready(this.results.drain(..).flatten().collect())
    }
}

impl<I, F, Fut: Future> fmt::Debug for Running<I, F, Fut> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("begun", &self.results.len())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
