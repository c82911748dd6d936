//! Requests that arrive together travel together.
//!
//! Whoever finds the road free goes alone and at once. Then whoever sends first
//! takes a lane, and leaves with all who were ready at the same moment. What
//! arrives while all lanes are taken waits, and goes together when one comes
//! back: no timer, and no delay without load. A server then has one statement,
//! one commit and one flush for many. The more there is to carry, the fewer lanes
//! carry it.
//!
//! Each caller gets its own truth. Together go only requests for different
//! keys, each with a reply of its own. If the server refuses what went
//! together, all of it is sent again one by one, so that whatever is wrong with
//! one of them is told to that one: stores take every request twice.
//!
//! A lane is a task: no caller cuts off the others by leaving, or holds them up
//! by not being polled; who goes alone carries nobody else. A trip ends when all
//! who wait for it have left. If the lane's runtime ends, those who were not sent
//! yet take another one.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::task::Poll;

use tokio::runtime::Handle;

use crate::error::{StoreError, StoreErrorKind};
use crate::identity::RecordId;
use crate::store::{Complete, Ending, Reserve};
use crate::sync::{Arc, Mutex, lock, oneshot};

/// As long as so few requests are under way, each gets a lane at once.
const LANES: usize = 8;
/// As long as fewer are under way, each is sent by its own caller: to carry one, a
/// task is not worth it.
const ALONE: usize = 2;
/// How many lanes there are when more are under way. With one, every caller
/// would wait for up to two trips; the more there are, the fewer go together.
const FEW: usize = 2;
/// The most requests that go together.
const MOST: usize = 64;
/// The most bytes that go together: what is larger goes by itself.
const MOST_BYTES: usize = 256 * 1024;

/// How often a request takes a lane whose runtime ends before it is sent.
const TRIES: u32 = 3;

/// What goes together with others of its kind.
pub(super) trait Request: Clone + Send + Sync + 'static {
    /// No two requests for one key go together.
    fn key(&self) -> &RecordId;

    /// About how many bytes it takes, but for hundreds.
    fn bytes(&self) -> usize;
}

impl Request for Reserve {
    fn key(&self) -> &RecordId {
        &self.id
    }

    fn bytes(&self) -> usize {
        self.elements.len() * 32
    }
}

impl Request for Complete {
    fn key(&self) -> &RecordId {
        &self.holder.id
    }

    fn bytes(&self) -> usize {
        match &self.ending {
            Ending::Answer(answer) => answer.bytes.len(),
            Ending::Tombstone(_) => 0,
        }
    }
}

/// How requests of one kind are sent.
pub(super) trait Trip: Send + Sync + 'static {
    type Request: Request;
    type Reply: Send + 'static;

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
    alone: usize,
    line: Mutex<Line<T>>,
}

struct Line<T: Trip> {
    /// Lanes in use.
    under_way: usize,
    /// Requests in them.
    carried: usize,
    /// Whether one of these has not left yet.
    is_boarding: bool,
    waiting: VecDeque<Waiting<T>>,
}

struct Waiting<T: Trip> {
    request: T::Request,
    reply: Sender<T>,
}

type Sender<T> = oneshot::Sender<Told<<T as Trip>::Reply>>;

/// What becomes of a request. Nothing, if the runtime that sent it has ended.
enum Told<T> {
    Reply(Result<T, StoreError>),
    /// It was not sent.
    Again,
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
        Self::with(trip, LANES, ALONE)
    }

    /// Sends each request by itself.
    #[cfg(feature = "mysql")]
    pub(super) fn apart(trip: T) -> Self {
        Self::with(trip, 0, 0)
    }

    fn with(trip: T, lanes: usize, alone: usize) -> Self {
        Self(Arc::new(Shared {
            trip,
            lanes,
            alone,
            line: Mutex::new(Line {
                under_way: 0,
                carried: 0,
                is_boarding: false,
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
        if self.0.lanes == 0 {
            return self.0.trip.alone(request).await;
        }
        if let Some(_alone) = self.alone() {
            return self.0.trip.alone(request).await;
        }
        for _ in 0..TRIES {
            let (reply, later) = oneshot::channel();
            let request = request.clone();
            self.enter(Waiting { request, reply });
            match later.await {
                Ok(Told::Reply(reply)) => return reply,
                Ok(Told::Again) => {}
                Err(_) => return Err(no_runtime().ambiguous()),
            }
        }
        Err(no_runtime())
    }

    /// Takes the road for one request that its own caller sends, if hardly anybody
    /// is on it.
    fn alone(&self) -> Option<Alone<'_, T>> {
        let mut line = lock(&self.0.line);
        let most = self.0.alone;
        let is_free = line.under_way < most && line.carried < most && line.waiting.is_empty();
        is_free.then(|| {
            line.under_way += 1;
            line.carried += 1;
            Alone(&self.0)
        })
    }

    fn enter(&self, waiting: Waiting<T>) {
        let lane = {
            let mut line = lock(&self.0.line);
            line.waiting.push_back(waiting);
            line.board(&self.0)
        };
        drive_if_there_is(lane);
    }
}

/// A request that is sent by its own caller, until dropped.
struct Alone<'a, T: Trip>(&'a Arc<Shared<T>>);

impl<T: Trip> Drop for Alone<'_, T> {
    fn drop(&mut self) {
        let lane = {
            let mut line = lock(&self.0.line);
            line.under_way -= 1;
            line.carried -= 1;
            line.board(self.0)
        };
        drive_if_there_is(lane);
    }
}

/// Not under the lock: a runtime that has ended drops the lane here and now.
fn drive_if_there_is<T: Trip>(lane: Option<Lane<T>>) {
    if let Some(lane) = lane {
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(drive(lane))),
            Err(_) => drop(lane),
        }
    }
}

impl<T: Trip> Line<T> {
    /// Whether one lane more is for those who wait.
    fn has_room(&self, lanes: usize) -> bool {
        self.under_way < FEW.min(lanes) || (self.under_way < lanes && self.carried < lanes)
    }

    /// Takes a lane for those who wait, if they need one and there is room.
    fn board(&mut self, shared: &Arc<Shared<T>>) -> Option<Lane<T>> {
        if self.waiting.is_empty() || self.is_boarding || !self.has_room(shared.lanes) {
            return None;
        }
        self.under_way += 1;
        self.is_boarding = true;
        Some(Lane {
            shared: Arc::clone(shared),
            is_boarding: true,
            is_over: false,
            carried: 0,
        })
    }

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
            bytes += waiting.request.bytes();
            if !next.is_empty() && (next.len() == MOST || bytes > MOST_BYTES) {
                self.waiting.push_front(waiting);
                break;
            }
            if keys.insert(*waiting.request.key()) {
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

/// A lane in use.
struct Lane<T: Trip> {
    shared: Arc<Shared<T>>,
    is_boarding: bool,
    is_over: bool,
    carried: usize,
}

impl<T: Trip> Lane<T> {
    /// Takes who goes next; if there is nobody, the lane is free.
    fn next(&mut self) -> Vec<Waiting<T>> {
        let mut line = lock(&self.shared.line);
        if std::mem::take(&mut self.is_boarding) {
            line.is_boarding = false;
        }
        line.carried -= std::mem::take(&mut self.carried);
        line.under_way -= 1;
        // With the others there are lanes enough, and they will be back.
        if line.under_way >= FEW && !line.has_room(self.shared.lanes) {
            self.is_over = true;
            return Vec::new();
        }
        let next = line.next();
        if next.is_empty() {
            self.is_over = true;
            return next;
        }
        line.under_way += 1;
        self.carried = next.len();
        line.carried += next.len();
        next
    }
}

impl<T: Trip> Drop for Lane<T> {
    /// Cut off, with its runtime: those who wait take another lane.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let waiting = {
            let mut line = lock(&self.shared.line);
            line.under_way -= 1;
            line.carried -= self.carried;
            if self.is_boarding {
                line.is_boarding = false;
            }
            std::mem::take(&mut line.waiting)
        };
        for waiting in waiting {
            waiting.reply.send(Told::Again).ok();
        }
    }
}

/// Goes, again and again, while somebody waits.
async fn drive<T: Trip>(mut lane: Lane<T>) {
    // Those who are ready too, such as all that have just been answered
    // together, come along.
    tokio::task::yield_now().await;
    loop {
        let next = lane.next();
        if next.is_empty() {
            return;
        }
        carry(&lane.shared, next).await;
    }
}

/// Sends what goes together, for as long as somebody waits for it.
async fn carry<T: Trip>(shared: &Arc<Shared<T>>, all: Vec<Waiting<T>>) {
    let all = all
        .into_iter()
        .map(|waiting| (waiting.request, waiting.reply));
    let (requests, mut callers): (Vec<_>, Vec<_>) = all.unzip();
    let sent = async {
        match requests.as_slice() {
            [request] => Ok(Replies::Each(vec![shared.trip.alone(request).await])),
            requests => shared.trip.together(requests).await,
        }
    };
    let replies = tokio::select! {
        replies = sent => replies,
        () = all_left::<T>(&mut callers) => return,
    };
    match replies {
        Ok(Replies::Each(replies)) => {
            for (caller, reply) in callers.into_iter().zip(replies) {
                caller.send(Told::Reply(reply)).ok();
            }
        }
        Ok(Replies::Refused) => {
            for (request, caller) in requests.into_iter().zip(callers) {
                tokio::spawn(apart(Arc::clone(shared), request, caller));
            }
        }
        Err(error) => {
            for caller in callers {
                caller.send(Told::Reply(Err(error.clone()))).ok();
            }
        }
    }
}

/// Sends again by itself what was refused together. It takes no lane: one of
/// these may wait for another session, and nobody waits for that one.
async fn apart<T: Trip>(shared: Arc<Shared<T>>, request: T::Request, mut caller: Sender<T>) {
    let reply = tokio::select! {
        reply = shared.trip.alone(&request) => reply,
        () = caller.closed() => return,
    };
    caller.send(Told::Reply(reply)).ok();
}

async fn all_left<T: Trip>(callers: &mut [Sender<T>]) {
    poll_fn(|cx| {
        let mut is_anybody_here = false;
        for caller in &mut *callers {
            // Each is polled, so that each that leaves wakes this.
            is_anybody_here |= caller.poll_closed(cx).is_pending();
        }
        if is_anybody_here {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

fn no_runtime() -> StoreError {
    StoreError::new(
        StoreErrorKind::Transient,
        "the runtime in which a statement was to be sent has ended",
    )
}

#[cfg(test)]
mod tests;
