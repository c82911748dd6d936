//! Requests that arrive together travel together.
//!
//! A request is sent at once, by itself and by its caller, while a lane is free.
//! What arrives while all are taken waits, and goes together when the first one
//! comes back: no timer, and no delay without load. A server then has one
//! statement, one commit and one flush for many.
//!
//! Each caller gets its own truth. Together go only requests for different
//! keys, each with a reply of its own. If the server refuses what went
//! together, all of it is sent again one by one, so that whatever is wrong with
//! one of them is told to that one: stores take every request twice.
//!
//! Whoever sends for others is a task, which no caller cuts off by leaving, and
//! which ends when all have left.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::task::Poll;

use tokio::runtime::Handle;

use crate::error::{StoreError, StoreErrorKind};
use crate::identity::RecordId;
use crate::sync::{Arc, Mutex, lock, oneshot};

/// How many statements of one kind are under way. One would make a caller wait
/// for up to two trips; more make what goes together smaller.
const LANES: usize = 2;
/// The most requests that go together.
pub(super) const MOST: usize = 64;
/// The most bytes that go together: what is larger goes by itself.
const MOST_BYTES: usize = 256 * 1024;

/// How requests of one kind are sent.
pub(super) trait Trip: Send + Sync + 'static {
    type Request: Clone + Send + Sync + 'static;
    type Reply: Send + 'static;

    fn key(request: &Self::Request) -> &RecordId;

    /// About how many bytes a request takes.
    fn bytes(request: &Self::Request) -> usize;

    /// Sends one request.
    fn alone(
        &self,
        request: &Self::Request,
    ) -> impl Future<Output = Result<Self::Reply, StoreError>> + Send;

    /// Sends requests for different keys, at least two, in one trip. The replies
    /// are in their order.
    fn together(
        &self,
        requests: &[Self::Request],
    ) -> impl Future<Output = Result<Replies<Self::Reply>, StoreError>> + Send;
}

/// What came of requests that went together.
pub(super) enum Replies<T> {
    Each(Vec<Result<T, StoreError>>),
    /// The server refused all of them, because of one or of their company.
    Refused,
}

/// Sends requests of one kind; clones share the lanes.
pub(super) struct Gather<T: Trip>(Arc<Shared<T>>);

struct Shared<T: Trip> {
    trip: T,
    lanes: usize,
    line: Mutex<Line<T>>,
}

struct Line<T: Trip> {
    under_way: usize,
    waiting: VecDeque<Waiting<T>>,
}

struct Waiting<T: Trip> {
    request: T::Request,
    reply: oneshot::Sender<Result<T::Reply, StoreError>>,
    /// Where its caller is, who may be the one to go on.
    runtime: Handle,
}

impl<T: Trip> Clone for Gather<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Trip> std::fmt::Debug for Gather<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gather")
    }
}

impl<T: Trip> Gather<T> {
    pub(super) fn new(trip: T) -> Self {
        Self::with(trip, LANES)
    }

    /// Sends each request by itself.
    #[cfg(feature = "mysql")]
    pub(super) fn apart(trip: T) -> Self {
        Self::with(trip, usize::MAX)
    }

    fn with(trip: T, lanes: usize) -> Self {
        Self(Arc::new(Shared {
            trip,
            lanes,
            line: Mutex::new(Line {
                under_way: 0,
                waiting: VecDeque::new(),
            }),
        }))
    }

    /// Sends a request, alone or with others.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it is not sent. Later, the server may have done
    /// it.
    pub(super) async fn send(&self, request: &T::Request) -> Result<T::Reply, StoreError> {
        match self.enter(request) {
            Turn::Now(lane) => {
                let reply = self.0.trip.alone(request).await;
                drop(lane);
                reply
            }
            Turn::Later(reply) => reply.await.map_err(|_| cut_off())?,
        }
    }

    fn enter(&self, request: &T::Request) -> Turn<T> {
        let mut line = lock(&self.0.line);
        match Handle::try_current() {
            Ok(runtime) if line.under_way >= self.0.lanes => {
                let (reply, later) = oneshot::channel();
                line.waiting.push_back(Waiting {
                    request: request.clone(),
                    reply,
                    runtime,
                });
                Turn::Later(later)
            }
            _ => {
                line.under_way += 1;
                Turn::Now(Lane(Arc::clone(&self.0)))
            }
        }
    }
}

enum Turn<T: Trip> {
    Now(Lane<T>),
    Later(oneshot::Receiver<Result<T::Reply, StoreError>>),
}

/// A lane in use. However its trip ends, those who wait go on.
struct Lane<T: Trip>(Arc<Shared<T>>);

impl<T: Trip> Drop for Lane<T> {
    fn drop(&mut self) {
        let next = {
            let mut line = lock(&self.0.line);
            let next = line.next();
            if next.is_empty() {
                line.under_way -= 1;
            }
            next
        };
        if let Some(first) = next.first() {
            let lane = Self(Arc::clone(&self.0));
            let runtime = first.runtime.clone();
            runtime.spawn(carry(lane, next));
        }
    }
}

impl<T: Trip> Line<T> {
    /// Takes who goes next: the first ones, of different keys, that still wait.
    fn next(&mut self) -> Vec<Waiting<T>> {
        let mut next = Vec::new();
        let mut keys = HashSet::new();
        let mut bytes = 0;
        let mut left = VecDeque::new();
        while let Some(waiting) = self.waiting.pop_front() {
            // Whoever has left was told that nothing is known of it: not
            // sending it now keeps that true.
            if waiting.reply.is_closed() {
                continue;
            }
            bytes += T::bytes(&waiting.request);
            if !next.is_empty() && (next.len() == MOST || bytes > MOST_BYTES) {
                self.waiting.push_front(waiting);
                break;
            }
            if keys.insert(*T::key(&waiting.request)) {
                next.push(waiting);
            } else {
                left.push_back(waiting);
            }
        }
        while let Some(waiting) = left.pop_back() {
            self.waiting.push_front(waiting);
        }
        next
    }
}

/// Sends what goes together, for as long as somebody waits for it.
async fn carry<T: Trip>(lane: Lane<T>, mut all: Vec<Waiting<T>>) {
    let requests: Vec<_> = all.iter().map(|waiting| waiting.request.clone()).collect();
    let trip = &lane.0.trip;
    let sent = async {
        match requests.as_slice() {
            [request] => Ok(Replies::Each(vec![trip.alone(request).await])),
            requests => trip.together(requests).await,
        }
    };
    let replies = tokio::select! {
        replies = sent => replies,
        () = all_left(&mut all) => return,
    };
    match replies {
        Ok(Replies::Each(replies)) => {
            for (waiting, reply) in all.into_iter().zip(replies) {
                waiting.reply.send(reply).ok();
            }
        }
        Ok(Replies::Refused) => {
            for waiting in all {
                let shared = Arc::clone(&lane.0);
                tokio::spawn(apart(shared, waiting));
            }
        }
        Err(error) => {
            for waiting in all {
                waiting.reply.send(Err(error.clone())).ok();
            }
        }
    }
}

/// Sends again by itself what was refused together. It takes no lane: one of
/// these may wait for another session, and nobody waits for that one.
async fn apart<T: Trip>(shared: Arc<Shared<T>>, mut waiting: Waiting<T>) {
    let reply = tokio::select! {
        reply = shared.trip.alone(&waiting.request) => reply,
        () = waiting.reply.closed() => return,
    };
    waiting.reply.send(reply).ok();
}

async fn all_left<T: Trip>(all: &mut [Waiting<T>]) {
    poll_fn(|cx| {
        // Each is polled, so that each that leaves wakes this.
        let here = all
            .iter_mut()
            .filter_map(|waiting| waiting.reply.poll_closed(cx).is_pending().then_some(()))
            .count();
        if here == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// The runtime that sent it has ended.
fn cut_off() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "a statement that went together with others was cut off",
    )
    .ambiguous()
}

#[cfg(test)]
mod tests;
